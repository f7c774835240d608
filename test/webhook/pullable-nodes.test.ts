import { test } from 'tap';
import { denied, silent, type Answer } from '../fleet/fleet-setup.ts';
import { failureOf } from '../support/facts.ts';
import { type Script } from '../fleet/support.ts';
import { until } from '../support/until.ts';
import { able, budgetMs, image, poor, setup } from './pullable-setup.ts';
import { podOf, workload } from './support.ts';
import { like } from '../support/like.ts';

test('a pod with a private image lands only on nodes that can pull it, even the first one', async (t) => {
  const orders: [what: string, scripts: readonly Script[]][] = [
    ['the owner is refused', [poor, able]],
    ['three groups', [able, poor, { fingerprint: 'third', node: 'node-third' }]],
    ['the other group cannot reach the registry', [able, { ...poor, facts: denied('unavailable') }]],
  ];
  for (const [what, scripts] of orders) {
    const { lands, admit, requestCounts, metric, lines } = await setup(t, scripts);
    t.strictSame(await lands(), ['node-able', 'node-new'], what);
    const asked = requestCounts();
    t.strictSame(await lands(), ['node-able', 'node-new'], what);
    t.strictSame(requestCounts(), asked, `${what}: each group is asked once`);
    t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="excluded"}'), 2);
    like(t, lines.at(-1), {
      msg: 'admission decided',
      namespace: 'shop',
      generateName: 'web-',
      excludedNodes: ['node-poor'],
    });
    t.strictSame((await admit()).warnings, []);
  }
});

test('without `requirePullableNodes`, groups are not queried and no node is excluded', async (t) => {
  const { lands, requestCounts } = await setup(t, [able, poor], { requirePullableNodes: false });
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
  t.strictSame(requestCounts(), [1, 0]);
});

test('a group that does not respond delays the pod no longer than the budget, and is not excluded', async (t) => {
  const { lands, agents, clock, fleet } = await setup(t, [able, { ...poor, facts: silent }]);
  const landing = lands();
  await until(() => agents[1]?.requests.length === 1);
  await clock.advance(budgetMs);
  t.strictSame(await landing, ['node-able', 'node-poor', 'node-new']);
  fleet.close();
});

test('results after the response count for the next pod', async (t) => {
  let release: (() => void) | undefined;
  const late: Answer = (body, response) => {
    release = () => {
      const lines = body.images.map((each) => `${JSON.stringify(failureOf(each.image, 'forbidden'))}\n`);
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(lines.join(''));
    };
  };
  const { lands, clock } = await setup(t, [able, { ...poor, facts: late }]);
  const landing = lands();
  await until(() => release !== undefined);
  await clock.advance(budgetMs);
  t.strictSame(await landing, ['node-able', 'node-poor', 'node-new']);
  release?.();
  let placed: readonly string[] = [];
  await until(async () => (placed = await lands()).length < 3);
  t.strictSame(placed, ['node-able', 'node-new'], 'the late answer serves the next pod');
});

test('agents without node names exclude no node', async (t) => {
  const { node: _, ...nameless } = poor;
  const { admit, metric } = await setup(t, [able, nameless]);
  const { operations, required } = await admit();
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="kept"}'), 1);
});

test('a missing image is not looked up in every group', async (t) => {
  const { admit, requestCounts } = await setup(t, [{ ...able, facts: denied('not-found') }, poor]);
  t.ok((await admit()).gated);
  t.strictSame(requestCounts(), [1, 0]);
});

test('an image that is never pulled is not looked up', async (t) => {
  const { admit, agents } = await setup(t, [able, poor]);
  const local = 'registry.example/local/app:1';
  const object = podOf([image, local]);
  const containers = object.spec.containers.map((each) =>
    each.image === local ? { ...each, imagePullPolicy: 'Never' } : each,
  );
  await admit({ containers });
  t.notOk(
    agents.some(({ requests }) => requests.some(({ images }) => images.some((each) => each.image === local))),
  );
});

test('for the template of a DaemonSet, groups are not queried and no node is excluded', async (t) => {
  const { send, requestCounts } = await setup(t, [able, poor]);
  const object = { metadata: { name: 'd' }, spec: { template: { spec: podOf([image]).spec } } };
  const { required, operations } = await send(workload('DaemonSet', object));
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.strictSame(requestCounts(), [1, 0]);
});
