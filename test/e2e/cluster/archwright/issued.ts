/** Secrets with certificates as a kubelet would mount them, and webhooks that the controller configures. */
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import type { KubeClient } from '../../../../src/kube/api/client.ts';
import type { Secret } from '../../../../src/kube/api/objects.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { watchNamed } from '../../../../src/kube/watch/reflector.ts';
import { ownNamespace } from './archwright.ts';
import type { Cluster } from '../harness.ts';
import { waitFor } from '../control-plane/watch.ts';
import { silentLog } from '../../../support/captured.ts';

/** Writes webhooks for the pods of `default`, with `failurePolicy: Fail`. @returns the path of the file */
export async function writeWebhooksFile(cluster: Cluster, url: string): Promise<string> {
  const directory = join(cluster.directory, 'config');
  await mkdir(directory);
  const file = join(directory, 'webhooks.yaml');
  await writeFile(
    file,
    `webhooks:
  - name: pods.arch.example
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    timeoutSeconds: 10
    clientConfig: { url: ${url}/mutate }
    rules: [{ apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE] }]
    namespaceSelector:
      matchExpressions: [{ key: kubernetes.io/metadata.name, operator: In, values: [default] }]
`,
  );
  return file;
}

/** A client with delayed watches. */
function late(client: KubeClient, ms: number): KubeClient {
  return {
    ...client,
    lines: async function* (path, options) {
      for await (const line of client.lines(path, options)) {
        await pause(ms);
        yield line;
      }
    },
  };
}

/** Keeps a Secret's content as files, with a delay, as a kubelet does. Keys that are added later have no file. */
export async function mount(t: Test, cluster: Cluster, secretName: string, ms: number): Promise<string> {
  const dir = join(cluster.directory, 'mounted', `${secretName}-${ms}`);
  await mkdir(dir, { recursive: true });
  const path = paths.secrets(ownNamespace, secretName);
  await waitFor(cluster.client, path, (secret) => secret !== undefined);
  let writes = 0;
  const write = async (): Promise<void> => {
    const version = `..${(writes += 1)}`;
    const texts = await secretTexts(cluster, secretName);
    await mkdir(join(dir, version));
    for (const [key, text] of Object.entries(texts)) {
      await writeFile(join(dir, version, key), text);
      if (writes === 1) await symlink(join('..data', key), join(dir, key));
    }
    await symlink(version, join(dir, '..new'));
    await rename(join(dir, '..new'), join(dir, '..data'));
  };
  await write();
  let last = Promise.resolve();
  const client = late(cluster.client, ms);
  const onChange = (): void => void (last = last.then(write));
  const watch = watchNamed({
    client,
    path: paths.secrets(ownNamespace),
    name: secretName,
    trim: () => true,
    log: silentLog,
    onChange,
  });
  t.teardown(async () => {
    watch.stop();
    await last;
  });
  return dir;
}

export async function secretTexts(
  cluster: Cluster,
  name: string,
  namespace = ownNamespace,
): Promise<Record<string, string>> {
  return textsOf(await cluster.get<Secret>(paths.secrets(namespace, name))) ?? {};
}

export function textsOf(secret: Secret | undefined): Record<string, string> | undefined {
  if (secret === undefined) return undefined;
  const entries = Object.entries(secret.data ?? {});
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}
