/**
 * `archwright probe --installation` waits for the new configuration after an upgrade, and reports what is
 * missing.
 */
import t, { type Test } from 'tap';
import { createScrape } from '../../../cmd/installation/scrape.ts';
import { settled } from '../../../cmd/probe.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { connect } from '../../kube/support.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { apps, core, installation, putPod } from '../installation/installation.ts';
import { run } from '../run.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

async function setup(t: Test) {
  const world = await installation(t);
  const client = connect(t, world.store);
  /** @param each called at each pause, with the number of pauses so far */
  const wait = async (
    timeoutMs: number,
    each: (pauses: number) => Promise<void> | void = () => undefined,
  ) => {
    let [now, pauses] = [0, 0];
    const progress: string[] = [];
    const outcome = await settled({
      client,
      namespace: 'archwright',
      scrape: createScrape({ client, podNamespace: undefined }),
      deadline: timeoutMs,
      clock: {
        ...systemClock,
        monotonic: () => now,
        sleep: async (ms) => {
          now += ms;
          await each((pauses += 1));
        },
      },
      signal: neverAborted,
      progress: (line) => progress.push(line),
    });
    return { ...outcome, pauses, progress };
  };
  return { ...world, wait };
}

/** A container that waits. */
function waitsIn(store: KubeStore, name: string, part: string, waiting: object, lastState = {}): void {
  const containerStatuses = [{ name: part, state: { waiting }, lastState }];
  putPod(store, name, part, { status: { conditions: [], containerStatuses } });
}

t.test('it waits until every replica and the leader have the new configuration', async (t) => {
  const { wait, configure, hash, states, refresh } = await setup(t);
  t.strictSame(await wait(60_000), { problems: [], notes: [], pauses: 0, progress: [] });
  const next = configure('logLevel = "debug"\n');
  const order = ['archwright-webhook-a', 'archwright-controller-a', 'archwright-webhook-b'];
  const outcome = await wait(240_000, async (pauses) => {
    const state = states.get(order[pauses - 1] ?? '');
    if (state) state.hash = next;
    await refresh();
  });
  t.strictSame(outcome.problems, []);
  t.equal(outcome.pauses, 3);
  like(t, outcome.progress.slice(0, 3), [
    `waiting: archwright-webhook-a still has the configuration ${hash}; its ConfigMap has ${next}`,
    `waiting: archwright-webhook-b still has the configuration ${hash}; its ConfigMap has ${next}`,
    `waiting: archwright-controller-a, which leads, still has the configuration ${hash}; its ConfigMap has ${next}`,
  ]);
  const never = await wait(30_000, () => void (states.get('archwright-webhook-b')!.hash = next));
  t.strictSame(never.problems, []);
});

t.test('it reports old pods, a Deployment that is not rolled out, and a missing leader', async (t) => {
  const { wait, put, states, refresh } = await setup(t);
  put('deployments', 'archwright-webhook', 'webhook', { replicas: 3, updatedReplicas: 1 });
  put('deployments', 'archwright-controller', 'controller', { observedGeneration: 0 });
  states.get('archwright-controller-a')!.leads = false;
  await refresh();
  t.strictSame((await wait(0)).problems, [
    'Deployment archwright-controller: the last change is not rolled out yet',
    'Deployment archwright-webhook: 2 pods still to be replaced',
    'no controller leads',
  ]);
});

t.test('it reports a Deployment without pods, unless that is intended', async (t) => {
  const { wait, store } = await setup(t);
  store.remove(`${core}/pods/archwright-controller-a`);
  like(t, (await wait(0)).problems, [/^Deployment archwright-controller has no pods/]);
  const controller = `${apps}/deployments/archwright-controller`;
  const status = { observedGeneration: 9 };
  store.put(controller, { ...store.get(controller), spec: { replicas: 0 }, status });
  t.strictSame((await wait(0)).problems, []);
});

t.test('it reports replicas that crash, and that no controller leads', async (t) => {
  const { wait, store } = await setup(t);
  const crash = (name: string, part: string): void => {
    waitsIn(store, name, part, { reason: 'CrashLoopBackOff' }, { terminated: { exitCode: 1 } });
    store.page(`${core}/pods/${name}:8080/proxy/metrics`, undefined);
  };
  crash('archwright-webhook-a', 'webhook');
  const one = 'archwright-webhook-a: CrashLoopBackOff (last exit code 1): see its log';
  like(t, await wait(0), { problems: [one], notes: [] });
  crash('archwright-controller-a', 'controller');
  like(t, await wait(0), { problems: [one, /^archwright-controller-a: Crash/, 'no controller leads'] });
  const starting = { phase: 'Pending', conditions: [] };
  putPod(store, 'archwright-webhook-a', 'webhook', { status: starting });
  like(t, (await wait(0)).problems, [/^archwright-controller-a/, 'no controller leads']);
});

t.test('if no agent responds, it reports the refusal of Pod Security', async (t) => {
  const { wait, put, states, refresh, store } = await setup(t);
  for (const state of states.values()) state.readyAgents = 0;
  await refresh();
  store.remove(`${core}/pods/archwright-agent-x`);
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 3, numberReady: 0 });
  const cause = 'violates PodSecurity "baseline:latest": host namespaces';
  const message = `(combined from similar events): Error creating: pods "archwright-agent-9f" is forbidden: ${cause}`;
  store.put(`${core}/events/a`, {
    type: 'Warning',
    reason: 'FailedCreate',
    message,
    involvedObject: { kind: 'DaemonSet', name: 'archwright-agent' },
    lastTimestamp: '2026-11-01T00:00:00Z',
  });
  t.strictSame((await wait(0)).problems, [
    'no agent answers archwright-webhook-a, archwright-webhook-b, archwright-controller-a',
    'DaemonSet archwright-agent: 0 of 3 agents are ready',
    `DaemonSet archwright-agent: FailedCreate: ${cause}`,
  ]);
});

t.test('if no agent responds, it reports failing containers, unselected nodes, or the network', async (t) => {
  const { wait, put, states, refresh, store } = await setup(t);
  for (const state of states.values()) Object.assign(state, { readyAgents: 0, silentAgents: 1 });
  await refresh();
  const first = (await wait(0)).problems;
  like(t, first, [/^no agent answers/, /the agents are ready, but the webhook cannot reach them/]);
  const message = 'path "/" is mounted on "/" but it is not a shared or slave mount';
  for (const name of ['archwright-agent-x', 'archwright-agent-y', 'archwright-agent-z'])
    waitsIn(store, name, 'agent', { reason: 'CreateContainerError', message });
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 3, numberReady: 0 });
  t.strictSame((await wait(0)).problems.slice(1), [
    'DaemonSet archwright-agent: 0 of 3 agents are ready',
    `DaemonSet archwright-agent: archwright-agent-x and 2 more: CreateContainerError: ${message}`,
  ]);
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 0 });
  t.match((await wait(0)).problems[1], /no node is selected; see agentNodes/);
});

t.test('it ends early if agents or webhooks cannot start, but not at the first failure', async (t) => {
  const { wait, put, states, refresh, store } = await setup(t);
  const stuck = (name: string, part: string, reason: string) => waitsIn(store, name, part, { reason });
  stuck('archwright-webhook-b', 'webhook', 'ImagePullBackOff');
  store.page(`${core}/pods/archwright-webhook-b:8080/proxy/metrics`, undefined);
  const image = await wait(240_000);
  t.strictSame(image.problems, ['archwright-webhook-b: ImagePullBackOff']);
  t.equal(image.pauses, 7, 'after 20 s');
  stuck('archwright-webhook-b', 'webhook', 'ContainerCreating');
  t.strictSame((await wait(240_000)).problems, [], 'slow is not stuck');

  store.remove(`${core}/pods/archwright-webhook-b`);
  for (const state of states.values()) state.readyAgents = 0;
  await refresh();
  stuck('archwright-agent-x', 'agent', 'CreateContainerError');
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 1, numberReady: 0 });
  const agents = await wait(240_000, async (pauses) => {
    if (pauses === 2) stuck('archwright-agent-x', 'agent', 'ContainerCreating');
    if (pauses === 3) stuck('archwright-agent-x', 'agent', 'CreateContainerError');
    await refresh();
  });
  t.match(agents.problems.at(-1), /archwright-agent-x: CreateContainerError/);
  t.equal(agents.pauses, 10, 'after 20 s in a row');

  stuck('archwright-agent-x', 'agent', 'ContainerCreating');
  const involvedObject = { kind: 'Pod', name: 'archwright-agent-x', namespace: 'archwright' };
  const message =
    'MountVolume.SetUp failed for volume "host-0" : hostPath type check failed: /a is not a directory';
  const event = { type: 'Warning', reason: 'FailedMount', message, involvedObject };
  store.put(`${core}/events/mount`, { ...event, lastTimestamp: new Date().toISOString() });
  const missing = await wait(240_000);
  t.match(missing.problems.at(-1), /agent-x: ContainerCreating: .*\/a is not a directory/);
  t.equal(missing.pauses, 7, 'a missing directory of the node');
});

t.test('without metrics, the DaemonSet counts', async (t) => {
  const { wait, put, states, store } = await setup(t);
  for (const name of states.keys()) store.page(`${core}/pods/${name}:8080/proxy/metrics`, undefined);
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 3, numberReady: 1 });
  t.strictSame((await wait(0)).problems, []);
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 3, numberReady: 0 });
  t.strictSame((await wait(0)).problems, [
    'no agent is ready',
    'DaemonSet archwright-agent: 0 of 3 agents are ready',
  ]);
});

t.test('unreadable metrics are reported, and are no failure; the agents of the leader count', async (t) => {
  const { wait, states, refresh, store } = await setup(t);
  store.page(`${core}/pods/archwright-webhook-b:8080/proxy/metrics`, undefined);
  const { problems, notes, pauses } = await wait(240_000);
  t.strictSame(problems, []);
  like(t, notes, [/^metrics of archwright-webhook-b: .*503/]);
  t.equal(pauses, 20, 'after a minute');
  const controller = states.get('archwright-controller-a');
  Object.assign(controller ?? {}, { readyAgents: 0 });
  await refresh();
  t.match((await wait(0)).problems[0], 'no agent answers archwright-controller-a');
  Object.assign(controller ?? {}, { readyAgents: 1, leads: false });
  await refresh();
  putPod(store, 'archwright-controller-b', 'controller', {});
  const { problems: none, notes: both } = await wait(0);
  t.strictSame(none, [], 'another one may lead');
  like(t, both, [/^metrics of archwright-controller-b: /]);
});

t.test('exit codes and output of the program', async (t) => {
  const { store, config, states, refresh } = await installation(t);
  store.fault(/^POST .*\/pods$/, {
    status: 403,
    message: 'admission webhook "pods.arch.example" denied the request',
  });
  // It finds archwright's namespace.
  const probe = () => run(['probe', '--kubeconfig', config, '--installation', '--timeout', '2s']);
  const good = await probe();
  like(t, good, {
    code: 0,
    out: /^the configuration is in force, and agents answer\nthe webhook answers.*\n$/,
  });
  for (const state of states.values()) state.readyAgents = 0;
  await refresh();
  const bad = await probe();
  like(t, bad, { code: 1, err: /archwright does not work:\n {2}no agent answers archwright-webhook-a/ });
});
