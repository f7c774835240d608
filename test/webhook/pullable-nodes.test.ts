import { createFakeClock } from '../support/fake-clock.ts';
import { setImmediate } from 'node:timers/promises';
import { test } from 'tap';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import type { AdmissionRequest } from '../../src/kube/api/objects.ts';
import type { Operation } from '../../src/placement/decision.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { bindCounters } from '../../src/webhook/metrics.ts';
import { Mutator } from '../../src/webhook/mutate.ts';
import { denied, setup as setupFleet, silent, type Answer } from '../fleet/fleet-setup.ts';
import { factsOf, failureOf, type Script } from '../fleet/support.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../serving/support.ts';
import { applied, defaultPolicy as policy } from '../support/placement-input.ts';
import { able, image, poor, setup } from './pullable-setup.ts';
import { clusterOf, podOf, review, serve, workload } from './support.ts';

test('a pod with a private image lands only where it can be pulled, from the first pod on', async (t) => {
  const orders: [what: string, scripts: readonly Script[]][] = [
    ['the owner is refused', [poor, able]],
    ['the owner can pull', [able, poor]],
    ['three groups', [able, poor, { fingerprint: 'third', node: 'node-third' }]],
    ['the other one does not reach the registry', [able, { ...poor, facts: denied('unavailable') }]],
  ];
  for (const [what, scripts] of orders) {
    const { lands, admit, asked, metric, lines } = await setup(t, scripts);
    t.strictSame(await lands(), ['node-able', 'node-new'], what);
    t.strictSame(await lands(), ['node-able', 'node-new'], what);
    t.strictSame(
      asked(),
      scripts.map(() => 1),
      `${what}: each group is asked once`,
    );
    t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="excluded"}'), 2);
    t.match(lines.at(-1), {
      msg: 'admission decided',
      namespace: 'shop',
      generateName: 'web-',
      excludedNodes: ['node-poor'],
    });
    t.strictSame((await admit()).warnings, []);
  }
});

test('off: nobody is asked, and nobody left out', async (t) => {
  const { lands, asked } = await setup(t, [able, poor], { requirePullableNodes: false });
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
  t.strictSame(asked(), [1, 0]);
});

test('a public image lands everywhere', async (t) => {
  const { lands } = await setup(t, [able, { ...able, fingerprint: 'other', node: 'node-poor' }]);
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
});

test('a group that gives no answer is waited for within the budget only, and not excluded', async (t) => {
  const { lands, agents, fleet } = await setup(t, [able, { ...poor, facts: silent }], { budgetMs: 500 });
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
  await until(() => agents[1]?.asked.length === 1);
  fleet.close();
});

test('what is found out behind the answer counts for the next pod', async (t) => {
  let release: (() => void) | undefined;
  const late: Answer = (asked, response) => {
    release = () => {
      const lines = asked.images.map((each) => `${JSON.stringify(failureOf(each.image, 'forbidden'))}\n`);
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(lines.join(''));
    };
  };
  const { lands, fleetMetric } = await setup(t, [able, { ...poor, facts: late }], { budgetMs: 500 });
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
  await until(() => release !== undefined);
  release?.();
  const refused = 'archwright_fleet_surveyed_groups_total{outcome="refused"}';
  await until(async () => (await fleetMetric(refused)) !== 0);
  t.strictSame(await lands(), ['node-able', 'node-new']);
});

test('knowledge expires, and is asked for again', async (t) => {
  const { lands, agents, clock } = await setup(t, [able, poor]);
  t.strictSame(await lands(), ['node-able', 'node-new']);
  const [, second] = agents;
  if (!second) throw new Error('no agent');
  delete second.script.facts;
  t.strictSame(await lands(), ['node-able', 'node-new'], 'not yet');
  await clock.advance(10 * 60_000);
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
});

test('a node that gets other credentials joins another group, and is asked anew', async (t) => {
  const { lands, agents, clock, fleet } = await setup(t, [able, poor, { ...poor, node: 'node-third' }]);
  t.strictSame(await lands(), ['node-able', 'node-new']);
  const [, second, third] = agents;
  if (!second || !third) throw new Error('no agent');
  for (const { script } of [second, third]) {
    script.fingerprint = 'new-group';
    delete script.facts;
  }
  await clock.advance(60_000);
  await fleet.grouped(new AbortController().signal);
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
});

test('nodes are named by their label, where the cluster knows it', async (t) => {
  const cluster = clusterOf({ nodeHostnames: (node) => [node === 'node-poor' ? 'host-7' : node] });
  const { admit } = await setup(t, [able, poor, { ...poor, node: 'node-b' }], { cluster });
  t.match(JSON.stringify((await admit()).operations), /"NotIn","values":\["host-7","node-b"\]/);
});

test('agents without node names leave nobody out, and the pod is placed', async (t) => {
  const { node: _, ...nameless } = poor;
  const { admit, metric } = await setup(t, [able, nameless]);
  const { operations, required } = await admit();
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="kept"}'), 1);
});

test('an image that no group can pull excludes nobody', async (t) => {
  const { admit } = await setup(t, [{ ...able, facts: denied('forbidden') }, poor]);
  const { operations, warnings, gated } = await admit();
  t.ok(gated);
  t.match(warnings, [/app:1: (forbidden|unauthorized)/]);
  t.notMatch(JSON.stringify(operations), /hostname/);
});

test('two images, each on another node only: nobody is excluded, and the answer warns', async (t) => {
  const other = 'registry.example/team/other:1';
  const only =
    (own: string): Answer =>
    (asked) => ({
      results: asked.images.map((each) =>
        each.image === own ? factsOf(own) : failureOf(each.image, 'forbidden'),
      ),
    });
  const { admit } = await setup(t, [
    { ...able, facts: only(image) },
    { ...poor, facts: only(other) },
  ]);
  const { operations, warnings } = await admit({}, [image, other]);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.match(warnings, [/^archwright: no nodes are known that can pull and run all images: registry.example/]);
});

test('an image that does not exist is not asked about in every group', async (t) => {
  const { admit, asked } = await setup(t, [{ ...able, facts: denied('not-found') }, poor]);
  t.ok((await admit()).gated);
  t.strictSame(asked(), [1, 0]);
});

test('an image whose architectures are configured is not asked about', async (t) => {
  const { fleet, agents } = await setupFleet(t, [able, poor]);
  const { log } = recordingLog();
  const overrides = { find: (name: string) => factsOf(name, { source: 'override' }), version: 1 };
  const memory = new FactsMemory({ source: fleet, log, overrides });
  const { admitPod } = await serve(t, {
    memory,
    fleet,
    policies: { policyOf: () => ({ ...policy, requirePullableNodes: true }) },
  });
  t.strictSame((await admitPod([image])).required, ['amd64', 'arm64']);
  t.strictSame(
    agents.map(({ asked }) => asked.length),
    [0, 0],
  );
});

test('facts and nodes share one budget', async (t) => {
  const clock = createFakeClock();
  const budgets: number[] = [];
  const mutator = new Mutator({
    factsOfPod: async () => {
      await setImmediate();
      await clock.advance(120);
      return new Map([[image, factsOf(image)]]);
    },
    pullableNodes: ({ budgetMs }) => {
      budgets.push(budgetMs);
      return new Map();
    },
    policies: { policyOf: () => ({ ...policy, requirePullableNodes: true }) },
    cluster: undefined,
    counters: bindCounters(createMetrics()),
    clock,
    log: recordingLog().log,
  });
  const { request } = JSON.parse(review({ object: podOf([image]) })) as { request: AdmissionRequest };
  const { patch } = await mutator.mutate(request, 150);
  t.ok(patch);
  t.strictSame(budgets, [30]);
});

test('an image that is never pulled is not asked about', async (t) => {
  const { admit, agents } = await setup(t, [able, poor]);
  const local = 'registry.example/local/app:1';
  const object = podOf([image, local]);
  const containers = object.spec.containers.map((each) =>
    each.image === local ? { ...each, imagePullPolicy: 'Never' } : each,
  );
  await admit({ containers });
  t.notOk(
    agents.some(({ asked }) => asked.some(({ images }) => images.some((each) => each.image === local))),
  );
});

test('the template of a DaemonSet names no nodes, and nobody is asked', async (t) => {
  const { send, asked } = await setup(t, [able, poor]);
  const object = { metadata: { name: 'd' }, spec: { template: { spec: podOf([image]).spec } } };
  const { required, operations } = await send(workload('DaemonSet', object));
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.strictSame(asked(), [1, 0]);
});

test('called again with its own output, nothing changes', async (t) => {
  const { admit, send } = await setup(t, [able, poor]);
  const pod = podOf([image]);
  const { operations } = await admit();
  const again = await send({ object: applied(pod, operations as readonly Operation[]) });
  t.strictSame(again.operations, []);
});
