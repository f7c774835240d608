/** The API server and all agents are absent; a leader is paused for longer than its Lease. Pods still run. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { concurrently } from '../../../src/async/concurrently.ts';
import { archIn, expressionsOf } from '../../support/placement-input.ts';
import { startAgent, startController, type Server } from './archwright/archwright.ts';
import { leaderOf, shortLease, startAdmission, startArchwright } from './archwright/start.ts';
import type { Images } from './archwright/images.ts';
import { auditLog, type AuditEvent } from './control-plane/audit.ts';
import { plainNodes } from './control-plane/nodes.ts';
import { isGated, podOf, type PodNow } from './control-plane/pods.ts';
import { startCluster, type Cluster } from './harness.ts';

const nodes = plainNodes({ amd64: 1, arm64: 1 }).map((node) => ({ ...node, pods: 1000 }));
const settings = { 'on-unknown-image': 'gate' };
const maxGate = { 'max-gate-duration': '15s' };
/** Gates of 15 s, and what a busy machine adds. */
const patienceMs = 60_000;

/** Creates pods of a new image for arm64, which are gated until its registry may answer. */
async function createHeld(t: Test, cluster: Cluster, images: Images, name: string, count: number) {
  const image = images.push(name, ['arm64'], 'troubled');
  const { promise, resolve } = Promise.withResolvers<void>();
  const clear = images.troubled.faults.add(new RegExp(`/${name}/`), { kind: 'after', event: promise });
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  const names = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  const now = (): readonly (PodNow | undefined)[] => names.map((each) => pods.objects.get(`default/${each}`));
  await concurrently(names, 8, (each) => cluster.create(podOf(each, image)));
  await pods.until(`${name}: all are gated`, () => now().every((pod) => isGated(pod)));
  const bound = (): Promise<boolean> =>
    pods.until(`${name}: all are bound`, () => now().every((pod) => pod?.spec.nodeName), patienceMs);
  return {
    /** Waits until some have no gate. */
    begun: (): Promise<boolean> =>
      pods.until(`${name}: some are open`, () => now().filter((pod) => pod && !isGated(pod)).length >= 5),
    release: (): void => {
      clear();
      resolve();
    },
    /** Waits until all are where their image runs. */
    placed: async (): Promise<void> => {
      await bound();
      for (const pod of now()) {
        t.equal(pod?.spec.nodeName, 'arm64-0');
        t.strictSame(pod && expressionsOf(pod), [[archIn('arm64')]]);
      }
    },
    bound,
  };
}

void t.test('gated pods run after the API server or all agents were absent', async (t) => {
  const cluster = await startCluster({ nodes, schedulerQps: 500 }, t);
  const { images, tls, agents } = await startArchwright(cluster, { settings }, maxGate);
  const restarted = await createHeld(t, cluster, images, 'restarted', 60);
  await cluster.stopApiServer();
  restarted.release();
  await cluster.startApiServer();
  await restarted.placed();

  const [agent] = agents;
  await agent.process.stop();
  const silent = await createHeld(t, cluster, images, 'silent', 20);
  await silent.bound();
  await startAgent(cluster, {
    tls,
    name: 'agent-again',
    settings: images.settings,
    port: Number(new URL(agent.url).port),
  });
  const again = await createHeld(t, cluster, images, 'again', 20);
  again.release();
  await again.placed();
});

void t.test('a leader that was paused writes nothing when it continues', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-audit-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const audit = auditLog(directory, { users: ['one', 'other'] });
  const cluster = await startCluster({ nodes, schedulerQps: 500, apiServerFlags: audit.flags }, t);
  const { images, tls, agents } = await startAdmission(cluster, { settings });
  /** Requests of a controller that change something, but for the Lease. */
  const writes = (name: string): readonly AuditEvent[] =>
    audit
      .events()
      .filter(({ user, verb }) => user.username === name && !['get', 'list', 'watch'].includes(verb))
      .filter(({ objectRef }) => objectRef?.resource !== 'leases');
  const controllers = new Map<string, Server>();
  const pauseFile = (name: string): string => join(directory, `pause-${name}`);
  for (const name of ['one', 'other']) {
    // It pauses itself after a write, while many others are decided and wait for their turn.
    const env = { HOSTNAME: name, PAUSE_AT: 'gates: after patch', PAUSE_FILE: pauseFile(name) };
    const tuning = { ...shortLease, writes: { perSecond: 40, burst: 1 } };
    const own = { ...settings, ...maxGate };
    controllers.set(name, await startController(cluster, { tls, agents, name, env, tuning, settings: own }));
  }
  // Other writes are under way at the stop of a leader only by chance.
  for (let round = 0; round < 3; round += 1) {
    const name = await leaderOf(cluster.client);
    const held = await createHeld(t, cluster, images, `round-${round}`, 80);
    held.release();
    await held.begun();
    await writeFile(pauseFile(name), '');
    const next = await leaderOf(cluster.client, (other) => other !== name && other !== '');
    t.ok(writes(name).length >= 5, `${name} wrote while it led`);
    const resumed = new Date().toISOString();
    controllers.get(name)?.process.signal('SIGCONT');
    await held.placed();
    // A request can be under way when the leader is stopped. The leader aborts it, so it changes nothing.
    const after = writes(name).filter(
      ({ requestReceivedTimestamp, responseStatus }) =>
        requestReceivedTimestamp > resumed && (responseStatus?.code ?? 0) < 400,
    );
    t.strictSame(after, [], `${name} wrote nothing after it continued, while ${next} led`);
  }
});
