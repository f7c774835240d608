/**
 * Controllers are killed while they issue certificates and configure webhooks: at each step in a new cluster,
 * at each step of a new authority, and at random. With `failurePolicy: Fail` no pod is refused, each request
 * to the agent is answered, and written objects are always complete.
 */
import type { Tuning } from './archwright/controller.ts';
import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { parseWebhooks } from '../../../src/controller/state/webhooks-file.ts';
import { createRandom, seedOfRun } from '../random.ts';
import {
  ownNamespace,
  startAgent,
  startController,
  startWebhook,
  type TlsDirs,
} from './archwright/archwright.ts';
import { createPodGroup, maxGateMs, type PodGroup, startLoad } from './faults/pod-group.ts';
import { type PodNow } from './control-plane/pods.ts';
import { leaderOf, shortLease } from './archwright/start.ts';
import { cleanUp, nodes } from './faults/setup.ts';
import { killedAt } from './faults/steps.ts';
import { isSettled, readIssued, violationsIn, type Issued } from './faults/trust.ts';
import { createKillableControllers } from './faults/killable-controllers.ts';
import { startCluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import { mount, writeWebhooksFile } from './archwright/issued.ts';
import { freePorts } from './control-plane/ports.ts';
import { paths } from '../../../src/kube/api/paths.ts';

const seed = seedOfRun();
const name = 'archwright';
const randomKills = 3;
/** About the time that a change of the authority takes. */
const randomMs = 4000;
const settledMs = 120_000;

/**
 * A lifetime shorter than that of existing certificates makes them due at once. Renewal has a third of it,
 * with changes of leaders; each step of a new authority waits a twelfth of it.
 */
const minute = 60_000;
const day = 24 * 60 * minute;
const lives = {
  first: { certificateMs: 6 * minute, caMs: 365 * day },
  second: { certificateMs: 2 * minute, caMs: 364 * day },
  third: { certificateMs: 2 * minute, caMs: 363 * day },
} as const satisfies Record<string, Tuning>;

const foreign = {
  name: 'foreign.example.com',
  admissionReviewVersions: ['v1'],
  sideEffects: 'None',
  failurePolicy: 'Ignore',
  clientConfig: { url: 'https://127.0.0.1:1/' },
  rules: [
    { apiGroups: ['foreign.example.com'], apiVersions: ['*'], resources: ['*'], operations: ['CREATE'] },
  ],
};

void t.test(
  'certificates stay valid when a controller is killed at each step of issuing them, and at random',
  async (t) => {
    t.comment(`E2E_SEED=${seed}`);
    const random = createRandom(seed);
    const cluster = await startCluster({ nodes, schedulerQps: 500 }, t);
    const { client } = cluster;
    const images = await startImages(cluster);
    await cluster.createNamespace(ownNamespace);
    const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
    const podGroupSetup = { cluster, images, pods };
    const [webhookPort = 0, agentPort = 0] = await freePorts(2);
    const webhooksFile = await writeWebhooksFile(cluster, `https://127.0.0.1:${webhookPort}`);
    const wanted = parseWebhooks(await readFile(webhooksFile, 'utf8'), webhooksFile);
    await cluster.make('MutatingWebhookConfiguration', name);
    const agents = [{ url: `https://127.0.0.1:${agentPort}` }];
    const killable = createKillableControllers(
      t,
      cluster.directory,
      ({ name: who = '', tuning, env, ...rest }) =>
        startController(cluster, {
          ...rest,
          name: who,
          env: { HOSTNAME: who, ...env },
          tls: { controllerClient: join(cluster.directory, who) } as Partial<TlsDirs> as TlsDirs,
          agents,
          settings: {
            'on-unknown-image': 'gate',
            'max-gate-duration': `${maxGateMs}ms`,
            certificates: 'builtin',
            'webhook-configuration': name,
            'webhooks-file': webhooksFile,
          },
          tuning: { ...shortLease, ...tuning },
        }),
    );
    const issued = (): Promise<Issued> => readIssued(client, name);
    const checkIssued = async (when: string): Promise<Issued> => {
      const found = await issued();
      t.same(violationsIn(found, wanted), [], `${when}: complete, and trusted`);
      return found;
    };
    /** Waits for another authority, trusted by all components and the only one. */
    const settled = async (before = ''): Promise<string> => {
      const until = performance.now() + settledMs;
      for (;;) {
        const found = await issued();
        const id = found.authorities.newest?.certificate.id;
        if (id !== undefined && id !== before && isSettled(found, wanted)) return id;
        if (performance.now() > until)
          throw new Error(`not settled: ${violationsIn(found, wanted).join('; ')}`);
        await pause(100);
      }
    };
    const ours = wanted.map((each) => each.name);
    const namesIn = ({ webhooks }: Issued): readonly string[] => webhooks.map((each) => each.name);
    /** Pods that are gated with a dying or a running leader. */
    const podGroup = async (leader: string): Promise<PodGroup> => {
      await leaderOf(client, (now) => now === leader);
      const created = await createPodGroup(t, podGroupSetup, { name: leader, count: 8 });
      await created.releaseGated();
      return created;
    };

    for (const name of ['prepared', 'authority-issue', 'issue-webhook']) {
      const step = `certificates/${name}`;
      await killable.kill(step, { tuning: lives.first });
      t.same(namesIn(await checkIssued(step)), [], 'no webhook is configured before it responds');
    }

    await killable.kill('webhook-configuration/applied', {
      tuning: lives.first,
      meanwhile: async () => {
        const tls = {
          agent: await mount(t, cluster, 'archwright-agent-tls', 0),
          webhook: await mount(t, cluster, 'archwright-webhook-tls', 0),
          webhookClient: await mount(t, cluster, 'archwright-webhook-client-tls', 0),
        } as Partial<TlsDirs> as TlsDirs;
        await startAgent(cluster, { tls, settings: images.settings, port: agentPort });
        await startWebhook(cluster, {
          tls,
          agents,
          port: webhookPort,
          // No pod is gated without a leader, so the webhook must wait for the agent on a busy machine.
          settings: { 'on-unknown-image': 'gate', 'inline-budget': '8s' },
        });
      },
    });
    t.same(namesIn(await checkIssued('webhook-configuration/applied')), ours, 'in force, and complete');
    const edit = [
      { op: 'remove', path: '/webhooks/0/namespaceSelector' },
      { op: 'add', path: '/webhooks/-', value: foreign },
    ];
    await cluster.patch(paths.mutatingWebhookConfigurations(name), { type: 'json', body: edit });
    await killable.kill('webhook-configuration/applied', { tuning: lives.first });
    const both = namesIn(await checkIssued('webhook-configuration/applied')).toSorted();
    t.same(both, [foreign.name, ...ours], 'a foreign webhook stays until the next step');
    await killable.kill('webhook-configuration/written', { tuning: lives.first });
    t.same(namesIn(await checkIssued('webhook-configuration/written')), ours, 'that step removes it');
    const first = await settled();

    // The authority is replaced while pods keep coming.
    const load = startLoad(t, podGroupSetup);
    const ends: Promise<void>[] = [];
    for (const step of killedAt.certificates.filter((each) => each !== 'certificates/prepared')) {
      // Before these steps it waits for all components.
      const isSlow = ['certificates/authority-sign', 'certificates/authority-retire'].includes(step);
      const meanwhile = async (who: string): Promise<void> => void ends.push((await podGroup(who)).end());
      await killable.kill(step, { tuning: lives.second, ...(isSlow && { meanwhile }) });
      t.same(namesIn(await checkIssued(step)), ours, 'in force');
    }
    const finishing = await killable.live('finishing', { tuning: lives.second });
    const second = await settled(first);
    await Promise.all(ends);
    await finishing.process.stop();

    for (let kill = 0; kill < randomKills; kill += 1) {
      const who = `random-${kill}`;
      const { process } = await killable.live(who, { tuning: lives.third });
      await leaderOf(client, (now) => now === who);
      const ms = random.below(randomMs);
      await pause(ms);
      await process.stop();
      t.comment(`killed ${ms} ms after it led`);
      t.same(namesIn(await checkIssued(who)), ours, 'in force');
    }
    const last = await killable.live('last', { tuning: lives.third });
    await settled(second);
    const final = await podGroup('last');
    await final.end();
    await load.end();

    killable.expectKilledAtEach('certificates', 'webhook-configuration');
    await last.process.stop();
    await cleanUp(t, podGroupSetup);
  },
);
