/** The end of a fault test: after `archwright clean` nothing of archwright may be left. */
import type { Test } from 'tap';
import { ownNamespace, runArchwright } from '../archwright.ts';
import type { NodeObject } from '../nodes.ts';
import { type Ground } from './crowd.ts';
import { isGated } from '../pods.ts';

/** Runs it, and checks. */
export async function cleanUp(t: Test, { cluster, pods }: Pick<Ground, 'cluster' | 'pods'>): Promise<void> {
  const { code, output } = await runArchwright(cluster, [
    'clean',
    `--kubeconfig=${cluster.kubeconfig}`,
    `--namespace=${ownNamespace}`,
    '--webhook-configuration=archwright',
  ]);
  t.equal(code, 0, 'clean ends well', { output });
  const list = async <T>(path: string): Promise<readonly T[]> =>
    (await cluster.get<{ items: T[] }>(path)).items;
  const webhooks = await list<{ metadata: { name: string } }>(
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  );
  t.same(
    webhooks.map(({ metadata }) => metadata.name),
    [],
    'no webhook configuration is left',
  );
  await pods.until('no gate is left', (objects) => ![...objects.values()].some(isGated));
  const nodes = await list<NodeObject>('/api/v1/nodes');
  t.same(
    nodes.flatMap(({ spec }) => (spec?.taints ?? []).filter(({ key }) => key.startsWith('arch.example/'))),
    [],
    'no taint is left',
  );
  for (const resource of ['secrets', 'configmaps'] as const) {
    const found = await list<{ metadata: { name: string } }>(
      `/api/v1/namespaces/${ownNamespace}/${resource}`,
    );
    const ours = found.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('archwright'));
    t.same(ours, [], `no ${resource} of ours are left`);
  }
}
