import { setImmediate } from 'node:timers/promises';
import { test, type Test } from 'tap';
import { createFactsMemory } from '../../src/images/memory.ts';
import type { Pod, PodSpec, Secret } from '../../src/kube/objects.ts';
import type { Cluster } from '../../src/webhook/cluster.ts';
import type { Operation } from '../../src/placement/decision.ts';
import { denied, setup as setupFleet, silent, type Answer } from '../fleet/fleet-setup.ts';
import { factsOf, failureOf, manualClock, until, type Script } from '../fleet/support.ts';
import { recordingLog } from '../serving/support.ts';
import { applied } from '../support/placement-input.ts';
import { selects, type ModelNode } from '../support/scheduler-model.ts';
import { clusterOf, podOf, policy, serve, workload, type Admitted } from './support.ts';

/** Owned by the first agent. */
const image = 'registry.example/team/app:1';

const able: Script = { fingerprint: 'able-group', node: 'node-able', architecture: 'amd64' };
const poor: Script = {
  fingerprint: 'poor-group',
  node: 'node-poor',
  architecture: 'amd64',
  facts: denied('unauthorized'),
};

/** Nodes with agents, and one that has come since. */
const nodes: readonly ModelNode[] = ['node-able', 'node-poor', 'node-new'].map((name) => ({
  name,
  labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': 'amd64' },
  taints: [],
}));

interface Given {
  readonly cluster?: Cluster;
  readonly budgetMs?: number;
  readonly requirePullableNodes?: boolean;
}

async function setup(t: Test, scripts: readonly Script[], given: Given = {}) {
  const clock = manualClock();
  const { fleet, agents, metric: fleetMetric } = await setupFleet(t, scripts, { clock });
  const memory = createFactsMemory({ inspector: fleet, log: recordingLog().log });
  const { requirePullableNodes = true, budgetMs = 5000 } = given;
  const served = await serve(t, {
    memory,
    fleet,
    level: 'debug',
    policy: () => ({ ...policy, requirePullableNodes }),
    inlineBudgetMs: () => budgetMs,
    ...(given.cluster && { cluster: given.cluster }),
  });
  const admit = (spec: Partial<PodSpec> = {}, images = [image]): Promise<Admitted> =>
    served.admit({ object: podOf(images, spec) });
  /** Names of the nodes that an admitted pod can get onto. */
  const lands = async (spec: Partial<PodSpec> = {}, images = [image]): Promise<readonly string[]> => {
    const { operations } = await admit(spec, images);
    return landing(applied(podOf(images, spec), operations as readonly Operation[]));
  };
  return { ...served, review: served.admit, clock, agents, fleet, fleetMetric, admit, lands };
}

function landing(pod: Pod): readonly string[] {
  return nodes.filter((node) => selects(pod.spec, node)).map(({ name }) => name);
}

test('a pod with a private image lands only where it can be pulled, from the first pod on', async (t) => {
  const orders: [what: string, scripts: readonly Script[]][] = [
    ['the owner is refused', [poor, able]],
    ['the owner can pull', [able, poor]],
    ['three groups', [able, poor, { fingerprint: 'third', node: 'node-third' }]],
    ['the other one does not reach the registry', [able, { ...poor, facts: denied('unavailable') }]],
  ];
  for (const [what, scripts] of orders) {
    const { lands, admit, agents, metric, lines } = await setup(t, scripts);
    t.strictSame(await lands(), ['node-able', 'node-new'], what);
    t.strictSame(await lands(), ['node-able', 'node-new'], what);
    t.strictSame(
      agents.map(({ asked }) => asked.length),
      scripts.map(() => 1),
      `${what}: each group is asked once`,
    );
    t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="excluded"}'), 2);
    t.match(lines.at(-1), { msg: 'admission decided', excludedNodes: ['node-poor'] });
    t.strictSame((await admit()).warnings, []);
  }
});

test('off: nobody is asked, and nobody left out', async (t) => {
  const { lands, agents } = await setup(t, [able, poor], { requirePullableNodes: false });
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
  t.strictSame(
    agents.map(({ asked }) => asked.length),
    [1, 0],
  );
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
      const results = asked.images.map((each) => failureOf(each.image, 'forbidden'));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results }));
    };
  };
  const { lands, fleetMetric } = await setup(t, [able, { ...poor, facts: late }], { budgetMs: 500 });
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
  await until(() => release !== undefined);
  release?.();
  while ((await fleetMetric('archwright_fleet_surveyed_groups_total{outcome="refused"}')) === 0)
    await setImmediate();
  t.strictSame(await lands(), ['node-able', 'node-new']);
});

test('knowledge expires, and is asked for again', async (t) => {
  const { lands, agents, clock } = await setup(t, [able, poor]);
  t.strictSame(await lands(), ['node-able', 'node-new']);
  const [, second] = agents;
  if (!second) throw new Error('no agent');
  delete second.script.facts;
  t.strictSame(await lands(), ['node-able', 'node-new'], 'not yet');
  clock.advance(10 * 60_000);
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
  clock.advance(60_000);
  await fleet.grouped(new AbortController().signal);
  t.strictSame(await lands(), ['node-able', 'node-poor', 'node-new']);
});

test('nodes are named by their label, where the cluster knows it', async (t) => {
  const cluster = clusterOf({ nodeHostname: (node) => (node === 'node-poor' ? 'host-7' : undefined) });
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
  const { review, agents } = await setup(t, [able, poor]);
  const object = { metadata: { name: 'd' }, spec: { template: { spec: podOf([image]).spec } } };
  const { required, operations } = await review(workload('DaemonSet', object));
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.strictSame(
    agents.map(({ asked }) => asked.length),
    [1, 0],
  );
});

test('called again with its own output, nothing changes', async (t) => {
  const { admit, review } = await setup(t, [able, poor]);
  const pod = podOf([image]);
  const { operations } = await admit();
  const again = await review({ object: applied(pod, operations as readonly Operation[]) });
  t.strictSame(again.operations, []);
});

const regcred: Secret = {
  metadata: { namespace: 'shop', name: 'regcred' },
  type: 'kubernetes.io/dockerconfigjson',
  data: {
    '.dockerconfigjson': Buffer.from(
      JSON.stringify({ auths: { 'registry.example': { username: 'robot', password: 'let-me-in' } } }),
    ).toString('base64'),
  },
};

const bySecret: Answer = (asked) => ({
  results: asked.images.map((each) =>
    asked.auths
      ? factsOf(each.image, { credentialSource: 'pull-secret' })
      : failureOf(each.image, 'unauthorized'),
  ),
});

test('pull secrets', async (t) => {
  const imagePullSecrets = [{ name: 'regcred' }];
  const secrets = { 'shop/regcred': regcred };
  await t.test('a node that can pull with them is not left out', async (t) => {
    const { lands } = await setup(t, [able, { ...poor, facts: bySecret }], {
      cluster: clusterOf({ secrets }),
    });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
    t.strictSame(await lands(), ['node-able', 'node-new'], 'without them it is');
  });
  await t.test('a node that cannot reach the registry is left out even so', async (t) => {
    const scripts = [
      { ...able, facts: bySecret },
      { ...poor, facts: denied('unavailable') },
    ];
    const { lands } = await setup(t, scripts, { cluster: clusterOf({ secrets }) });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-new']);
  });
  await t.test('that cannot be read leave nobody out', async (t) => {
    const cluster = clusterOf({ secret: () => new Promise(() => undefined) });
    const { lands } = await setup(t, [able, poor], { cluster, budgetMs: 500 });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
  });
  await t.test('that do not match change nothing', async (t) => {
    const other = {
      ...regcred,
      data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
    };
    const cluster = clusterOf({ secrets: { 'shop/regcred': other } });
    const { lands } = await setup(t, [able, poor], { cluster });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-new']);
  });
  await t.test('that are malformed leave nobody out', async (t) => {
    const broken = { ...regcred, data: { '.dockerconfigjson': Buffer.from('{').toString('base64') } };
    const cluster = clusterOf({ secrets: { 'shop/regcred': broken } });
    const { lands } = await setup(t, [able, poor], { cluster });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
  });
});
