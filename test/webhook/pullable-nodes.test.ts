import { test } from 'tap';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { denied, setup as setupFleet } from '../fleet/fleet-setup.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';
import { defaultPolicy } from '../support/placement-input.ts';
import { podOf, serve, workload } from './support.ts';

const image = 'registry.example/team/app:1';

test('a pod with a private image excludes nodes that cannot pull it, a template does not', async (t) => {
  const { fleet, agents } = await setupFleet(t, [
    { fingerprint: 'poor', node: 'node-poor', architecture: 'amd64', facts: denied('unauthorized') },
    { fingerprint: 'able', node: 'node-able', architecture: 'amd64' },
  ]);
  const { admit, admitPod, metric, lines } = await serve(t, {
    cache: new FactsCache({ source: fleet, log: recordingLog().log }),
    fleet,
    level: 'debug',
    policies: { policyOf: () => ({ ...defaultPolicy, requirePullableNodes: true }) },
  });
  const requestCounts = (): readonly number[] => agents.map(({ requests }) => requests.length);
  const template = await admit(
    workload('DaemonSet', { metadata: { name: 'd' }, spec: { template: { spec: podOf([image]).spec } } }),
  );
  t.strictSame(template.required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(template.operations), /hostname/);
  const { operations, warnings } = await admitPod([image]);
  t.match(
    JSON.stringify(operations),
    /"kubernetes.io\/hostname","operator":"NotIn","values":\["node-poor"\]/,
  );
  t.strictSame(warnings, []);
  const counts = requestCounts();
  t.strictSame((await admitPod([image])).operations, operations);
  t.strictSame(requestCounts(), counts, 'each group is asked once');
  t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="excluded"}'), 2);
  like(t, lines.at(-1), {
    msg: 'admission decided',
    namespace: 'shop',
    generateName: 'web-',
    excludedNodes: ['node-poor'],
  });
});

test('agents without node names exclude no node', async (t) => {
  const { fleet } = await setupFleet(t, [
    { fingerprint: 'able', node: 'node-able', architecture: 'amd64' },
    { fingerprint: 'poor', architecture: 'amd64', facts: denied('unauthorized') },
  ]);
  const { admitPod, metric } = await serve(t, {
    cache: new FactsCache({ source: fleet, log: recordingLog().log }),
    fleet,
    policies: { policyOf: () => ({ ...defaultPolicy, requirePullableNodes: true }) },
  });
  const { operations, required } = await admitPod([image]);
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="kept"}'), 1);
});
