/** A Kubernetes API server with a store, and clients of it. */
import type { Test } from 'tap';
import { createKubeClient, type KubeClient, type KubeClientOptions } from '../../src/kube/api/client.ts';
import { KubeError } from '../../src/kube/api/errors.ts';
import { startKubeStore, type KubeStore, type KubeStoreOptions } from '../support/kube-store.ts';

export function connect(
  t: Test,
  options: Pick<KubeClientOptions, 'access'> & Partial<KubeClientOptions>,
): KubeClient {
  const client = createKubeClient({ userAgent: 'test', ...options });
  t.teardown(() => client.close());
  return client;
}

export async function connectedStore(
  t: Test,
  {
    now,
    isPlain = true,
    gracefulPods = false,
    ...options
  }: Partial<KubeClientOptions> & KubeStoreOptions = {},
): Promise<{ readonly store: KubeStore; readonly client: KubeClient }> {
  const store = await startKubeStore({ isPlain, gracefulPods, ...(now && { now }) });
  t.teardown(() => store.close());
  return { store, client: connect(t, { access: store.access, timeoutMs: 5_000, ...options }) };
}

/** The error of a request. */
export async function failure(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => new Error('no failure'),
    (cause: unknown) => cause,
  );
  if (error instanceof KubeError) return error;
  throw error;
}
