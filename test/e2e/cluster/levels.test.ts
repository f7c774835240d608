/** CPU levels: by node labels, the real scheduler puts pods that need a level on nodes that have it. */
import t from 'tap';
import { formatBroken, keyOfBroken } from '../../../src/images/sources/broken-images.ts';
import { multiArch } from '../../support/registry/content.ts';
import { ownNamespace } from './archwright/archwright.ts';
import { startCluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import type { FakeNode } from './control-plane/nodes.ts';
import { startAdmission } from './archwright/start.ts';

const repeats = 6;
const nfd = 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V';

/** Two nodes of each level, with the labels of NFD. */
const nodes: readonly FakeNode[] = [1, 2, 3, 4].flatMap((level) => {
  const labels = Object.fromEntries(
    Array.from({ length: level }, (_, index) => [`${nfd}${index + 1}`, 'true']),
  );
  return ['a', 'b'].map((name) => ({ name: `v${level}-${name}`, architecture: 'amd64', labels }));
});

/** Makes the scheduler prefer nodes of the lowest level. */
const lowest = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [2, 3, 4].map((level) => ({
      weight: 30,
      preference: { matchExpressions: [{ key: `${nfd}${level}`, operator: 'DoesNotExist' }] },
    })),
  },
};

void t.test(
  'pods run only on nodes with the CPU level of their image, even if they prefer lower ones',
  async (t) => {
    const cluster = await startCluster({ nodes }, t);
    const images = await startImages(cluster);
    const any = images.push('any', ['amd64', 'arm64']);
    const entry = images.push('entry', ['amd64/v3', 'arm64']);
    const stated = images.push('stated', ['amd64', 'arm64']);
    const content = multiArch(['linux/amd64', 'linux/arm64'], { label: 'noted' });
    images.public.push('noted', '1', content);
    const noted = `${images.public.host}/noted:1`;
    const key = keyOfBroken(content.digest, 'amd64', 4) ?? '';
    const note = {
      digest: content.digest,
      architecture: 'amd64',
      image: noted,
      namespaces: ['default'],
      until: Date.now() + 3_600_000,
    };
    // Nothing gates pods here, and on a busy machine the first lookup takes longer than the default budget.
    const settings = {
      'image-overrides': `[{ match = "${images.public.host}/stated", level = "v2" }]`,
      'inline-budget': '5s',
    };
    await startAdmission(cluster, { images, settings, failurePolicy: 'Fail' });
    const data = { [key]: formatBroken(note) };
    await cluster.make('ConfigMap', `${ownNamespace}/archwright-broken-images`, { data });

    const cases: [image: string, least: number][] = [
      [entry, 3],
      [stated, 2],
      [noted, 4],
      [any, 1],
    ];
    for (const [image, least] of cases) {
      const names = Array.from({ length: repeats }, (_, index) => `needs-${least}-${index}`);
      for (const name of names) await cluster.create(podOf(name, image, { affinity: lowest }));
      for (const name of names) {
        const node = await nodeOf(cluster, name);
        t.equal(node.slice(0, 2), `v${least}`, `${name} is on ${node}`);
      }
    }
  },
);
