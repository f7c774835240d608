/** Files of examples fit together: the README’s steps with kind, and the settings of distributions. */
import { readFileSync, readdirSync } from 'node:fs';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { chartSections } from '../../scripts/docs/chart/chart.ts';
import type { Node, Pod } from '../../src/kube/api/objects.ts';
import { like } from '../support/like.ts';
import { join } from 'node:path';
import { defaultConfigPathCandidates } from '../../daemon/containerd/config/rules.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';

const read = (name: string): string => readFileSync(`examples/kind/${name}`, 'utf8');
const nodes = parseAllDocuments(read('fake-nodes.yaml')).map((document) => document.toJS() as Node);
const pod = parse(read('pod.yaml')) as Pod;
const values = parse(read('values.yaml')) as {
  image: Record<string, string>;
  agent: { affinity: Record<string, unknown> };
};

t.test(
  'kwok simulates a node of each of two architectures, with a taint that keeps other pods away',
  async (t) => {
    const architectures = new Set(nodes.map(({ metadata }) => metadata?.labels?.['kubernetes.io/arch']));
    t.strictSame(architectures, new Set(['amd64', 'arm64']));
    for (const { metadata, spec } of nodes) {
      t.equal(metadata?.annotations?.['kwok.x-k8s.io/node'], 'fake');
      t.equal(metadata?.labels?.['kubernetes.io/hostname'], metadata?.name);
      like(t, spec?.taints, [{ key: 'kwok.x-k8s.io/node', effect: 'NoSchedule' }]);
    }
  },
);

t.test('the pod may run on both, and prefers one', async (t) => {
  for (const { metadata } of nodes) like(t, metadata?.labels, pod.spec?.nodeSelector ?? { none: true });
  like(t, pod.spec?.tolerations, [{ key: 'kwok.x-k8s.io/node', operator: 'Exists' }]);
  t.equal(pod.metadata?.labels?.['arch.example/preferred'], 'arm64');
});

t.test('no agent is scheduled to a simulated node', async (t) => {
  const term = { matchExpressions: [{ key: 'type', operator: 'NotIn', values: ['kwok'] }] };
  t.strictSame(values.agent.affinity, {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
  });
  for (const { metadata } of nodes) t.equal(metadata?.labels?.['type'], 'kwok');
});

t.test('the values exist in the chart, and the image is the one that the README builds', async (t) => {
  const known = new Set(chartSections().flatMap((section) => section.values.map(({ key }) => key)));
  for (const key of Object.keys(values.image)) t.ok(known.has(`image.${key}`), key);
  t.ok(known.has('agent.affinity'));
  const { registry, repository, tag } = values.image;
  const readme = readFileSync('README.md', 'utf8');
  for (const step of ['docker build -t', 'kind load docker-image'])
    t.ok(readme.includes(`${step} ${registry}/${repository}:${tag} `), step);
});

t.test('the example of each distribution is a valid configuration of an agent', async (t) => {
  const dir = 'examples/distributions';
  const names = readdirSync(dir);
  t.equal(names.length, 10);
  for (const name of names) {
    const file = join(dir, name);
    const { problems, configuration } = await loadConfiguration({ file, env: {}, flags: {}, part: 'agent' });
    t.strictSame(problems, [], name);
    t.equal(configuration?.hostRoot, '/host', name);
    for (const path of configuration?.containerdConfigPathCandidates ?? [])
      t.ok(defaultConfigPathCandidates.includes(path), `${name}: ${path} is a default path`);
  }
});
