/** Objects as the chart renders them, and what an API server says to them without keeping them. */
import { parse, parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { patience } from '../cluster/harness.ts';
import { pathOf } from '../cluster/paths.ts';

export interface Rendered extends KubeObject {
  readonly spec?: {
    readonly template?: { readonly metadata: object; readonly spec: object };
    readonly serviceAccountName?: string;
    readonly priorityClassName?: string;
  };
  readonly data?: Readonly<Record<string, string>>;
}

/** Each document of a YAML text, read as Kubernetes reads it. */
export function objectsOf(text: string): readonly Rendered[] {
  return parseAllDocuments(text, { version: '1.1' }).flatMap((document) => {
    const object = document.toJS() as Rendered | null;
    return object === null ? [] : [object];
  });
}

/**
 * Applies in a dry run, refusing unknown and double fields.
 * @param path of its collection, where it is known already
 * @throws KubeError where it is refused
 */
export async function dryRun(client: KubeClient, object: Rendered, path?: string): Promise<void> {
  await client.patch(
    `${path ?? (await pathOf(client, object))}/${object.metadata?.name ?? ''}`,
    { type: 'apply', body: object, fieldManager: 'e2e', force: true },
    { signal: patience(), query: { dryRun: 'All', fieldValidation: 'Strict' } },
  );
}

/** The webhook configuration that a controller applies, from the ConfigMap with its webhooks. */
export function withWebhooks(map: Rendered | undefined): Rendered {
  const text = map?.data?.['webhooks.yaml'] ?? '';
  const { webhooks } = parse(text, { version: '1.1' }) as { readonly webhooks: readonly object[] };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'archwright' },
    webhooks,
  } as Rendered;
}

/** Pods of ours are admitted only where it is; its value can never be changed. */
export const priorityClasses = '/apis/scheduling.k8s.io/v1/priorityclasses';
