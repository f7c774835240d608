/** The webhook's part of a Kubernetes API: two nodes, the examples' namespaces and their Secrets. */
import type { Secret } from '../../src/kube/api/objects.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { events, json, startKubeServer } from '../../test/support/kube-server.ts';
import type { Workspace } from './workspace.ts';

export const nodes = { 'node-a': 'amd64', 'node-b': 'arm64' } as const;
export type NodeName = keyof typeof nodes;

/** Every namespace has this label (kubernetes pkg/controlplane). */
export function namespaceLabels(name: string): Readonly<Record<string, string>> {
  return { 'kubernetes.io/metadata.name': name };
}

/**
 * Starts the API and writes a kubeconfig for it.
 * @returns path of the kubeconfig
 */
export async function startCluster(
  workspace: Workspace,
  objects: { readonly namespaces: Iterable<string>; readonly secrets: readonly Secret[] },
): Promise<string> {
  const server = await startKubeServer();
  workspace.onClose(() => server.close());
  const namespaces = [...objects.namespaces].map((name) => ({
    metadata: { name, labels: namespaceLabels(name) },
  }));
  const list = (items: unknown) => json({ metadata: { resourceVersion: '1' }, items });
  server.script('/api/v1/namespaces', list(namespaces));
  server.script('/api/v1/namespaces?watch', events());
  server.script(
    '/api/v1/nodes',
    list(
      Object.entries(nodes).map(([name, architecture]) => ({
        metadata: { name, labels: { 'kubernetes.io/arch': architecture } },
        status: { nodeInfo: { architecture, operatingSystem: 'linux' } },
      })),
    ),
  );
  server.script('/api/v1/nodes?watch', events());
  for (const secret of objects.secrets) {
    const { namespace = 'default', name = '' } = secret.metadata ?? {};
    server.script(`/api/v1/namespaces/${namespace}/secrets/${name}`, json(secret));
  }

  const { tls, authorization } = await server.access.now();
  const token = authorization === undefined ? '' : reveal(authorization).replace(/^Bearer /, '');
  return await workspace.write(
    'kubeconfig',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'demo',
      contexts: [{ name: 'demo', context: { cluster: 'demo', user: 'webhook' } }],
      clusters: [
        {
          name: 'demo',
          cluster: {
            server: server.access.server,
            'certificate-authority-data': Buffer.from(String(tls.ca)).toString('base64'),
          },
        },
      ],
      users: [{ name: 'webhook', user: { token } }],
    }),
  );
}
