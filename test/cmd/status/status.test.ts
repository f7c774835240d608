/** `archwright status` on a healthy installation, and on one with problems. */
import t, { type Test } from 'tap';
import type { Status } from '../../../cmd/status/collect.ts';
import {
  credentialProblemsInfo,
  idOfEvent,
} from '../../../src/controller/features/credential-problems/credential-problems.ts';
import { controllerMetrics } from '../../../src/controller/features.ts';
import { servingMetrics } from '../../../src/serving/metrics.ts';
import type { Metrics } from '../../../src/telemetry/metrics.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { apps, core, installation, labelsOf, putPod } from '../installation/installation.ts';
import { run } from '../run.ts';
import { like } from '../../support/like.ts';

const lease = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';
const webhooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
const day = 86_400_000;

function set(metrics: Metrics, name: string, value: number, labels: Record<string, string> = {}): void {
  const spec = controllerMetrics.find((each) => each.name === name);
  if (!spec) throw new Error(name);
  metrics.gauge(spec, labels).set(value);
}

function setExpiry(metrics: Metrics, use: 'client' | 'server', days: number): void {
  metrics.gauge(servingMetrics.certificateExpiry, { use }).set((Date.now() + days * day) / 1000);
}

function putEvent(
  store: KubeStore,
  reason: string,
  message: string,
  involvedObject: { readonly kind: string; readonly name: string; readonly uid?: string },
): void {
  const lastTimestamp = new Date().toISOString();
  const event = { type: 'Warning', reason, message, involvedObject, lastTimestamp };
  store.put(`${core}/events/${reason}-${involvedObject.uid ?? ''}`, event);
}

function putGated(store: KubeStore, created: number): void {
  store.put('/api/v1/namespaces/shop/pods/web-0', {
    metadata: { creationTimestamp: new Date(created).toISOString() },
    spec: { containers: [], schedulingGates: [{ name: 'arch.example/scheduling-gate' }] },
    status: { phase: 'Pending' },
  });
}

async function setup(t: Test) {
  const world = await installation(t);
  const { store, config, states, configure, refresh } = world;
  const hash = configure('webhookConfiguration = "archwright"\n');
  for (const state of states.values()) {
    state.hash = hash;
    state.more = (metrics) => setExpiry(metrics, 'server', 60.5);
  }
  const leader = states.get('archwright-controller-a');
  if (!leader) throw new Error('no controller');
  leader.more = (metrics) => {
    set(metrics, 'archwright_webhook_configuration', 1, { state: 'in-force' });
    set(metrics, 'archwright_misplaced_pods', 0);
    metrics.info(credentialProblemsInfo)({ ids: '' });
  };
  await refresh();
  store.put(lease, { spec: { holderIdentity: 'archwright-controller-a_1', leaseDurationSeconds: 15 } });
  store.put(webhooks, { webhooks: [{ failurePolicy: 'Ignore' }, { failurePolicy: 'Ignore' }] });
  store.put('/api/v1/nodes/n1', {});
  store.put('/api/v1/nodes/n2', {});
  const status = (...args: readonly string[]) => run(['status', '--kubeconfig', config, ...args]);
  const json = async () => {
    const { out, code } = await status('-o', 'json');
    return { code, ...(JSON.parse(out) as Status & { readonly findings: readonly string[] }) };
  };
  return { ...world, hash, leader, status, json };
}

t.test('a healthy installation', async (t) => {
  const { status, json, hash } = await setup(t);
  const { code, out, err } = await status();
  t.equal(err, '');
  t.equal(
    out,
    [
      'REPLICA                  NODE    VERSION  READY  LEADS  CONFIGURATION',
      `archwright-webhook-a     node-1  0.1.0    yes    -      ${hash}`,
      `archwright-webhook-b     node-1  0.1.0    yes    -      ${hash}`,
      `archwright-controller-a  node-1  0.1.0    yes    yes    ${hash}`,
      '',
      'webhooks        in-force, 2 registered, failurePolicy Ignore',
      'certificates    the first expires in 60d (archwright-webhook-a, server)',
      'nodes           2',
      'agents          1 of 1 ready (archwright-agent)',
      'gated pods      none',
      'taints          none held back',
      'misplaced pods  0',
      'broken images   none',
      'credentials     no problem known',
      '',
    ].join('\n'),
  );
  t.equal(code, 0);
  like(t, await json(), { code: 0, namespace: 'archwright', findings: [], unread: [] });
});

t.test(
  'problems that the leader has not asked the agents for, or does not look for, are not known',
  async (t) => {
    const { configure, leader, refresh, status, json } = await setup(t);
    leader.more = () => undefined;
    await refresh();
    t.match((await status()).out, /^credentials +not known$/m);
    like(t, await json(), { code: 0, findings: [] });
    configure('misplacedPods = "off"\n');
    t.match((await status()).out, /^misplaced pods +not known$/m);
  },
);

t.test('programs that nodes could not execute, if agents trace them', async (t) => {
  const { leader, refresh, status, json } = await setup(t);
  const trace = async (containers: number, others: number): Promise<void> => {
    leader.more = (metrics) => {
      set(metrics, 'archwright_webhook_configuration', 1, { state: 'in-force' });
      set(metrics, 'archwright_exec_tracing_nodes', 3, { state: 'on' });
      set(metrics, 'archwright_exec_tracing_nodes', others, { state: 'no-events' });
      set(metrics, 'archwright_program_exec_format_containers', containers);
    };
    await refresh();
  };
  t.equal((await json()).programErrors, undefined);
  await trace(0, 1);
  const quiet = await status();
  t.match(quiet.out, /^program errors {2}in 0 containers; traced on 3 nodes, not on 1 \(no-events\)$/m);
  t.equal(quiet.code, 0, 'such a kernel is no error');
  await trace(1, 0);
  like(t, await json(), {
    code: 0,
    programErrors: { containers: 1, nodes: { on: 3 } },
    findings: [],
  });
});

t.test('what is left of the requests that Docker Hub allows', async (t) => {
  const { leader, refresh, status, json } = await setup(t);
  const leave = async (remaining: number): Promise<void> => {
    leader.dockerHub = { limit: 100, remaining };
    await refresh();
  };
  await leave(76);
  t.match((await status()).out, /^docker hub +76 of 100 requests left$/m);
  like(t, await json(), { code: 0, findings: [], dockerHub: { limit: 100, remaining: 76 } });
  await leave(9);
  like(t, await json(), { code: 1, findings: [/^Docker Hub allows a node only 9 more requests: /] });
});

t.test('problems are listed, and set the exit code', async (t) => {
  const { store, states, leader, put, refresh, status, json } = await setup(t);
  const message = 'n1: credentials are not used: /etc/creds/127.0.0.1_5000.toml is named wrongly';
  leader.more = (metrics) => {
    set(metrics, 'archwright_webhook_configuration', 1, { state: 'waiting' });
    set(metrics, 'archwright_gated_pods', 3, { age: 'older', reason: 'unauthorized' });
    set(metrics, 'archwright_gated_pods', 2, { age: '10s', reason: 'lookup' });
    set(metrics, 'archwright_gated_pods', 1, { age: 'older', reason: 'refused' });
    set(metrics, 'archwright_taint_blockers', 1, { reason: 'daemonsets' });
    set(metrics, 'archwright_misplaced_pods', 4);
    setExpiry(metrics, 'client', 3.5);
    metrics.info(credentialProblemsInfo)({ ids: `other ${idOfEvent(message)}` });
  };
  const old = states.get('archwright-webhook-b');
  if (old) old.hash = '000000000000';
  await refresh();
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 3, numberReady: 2 });
  const until = new Date(Date.now() + day).toISOString();
  const note = JSON.stringify({ image: 'app:1', namespaces: ['shop'], until });
  const data = { [`sha256-${'a'.repeat(64)}.arm64`]: note };
  store.put(`${core}/configmaps/archwright-broken-images`, { data });
  const agents = { kind: 'DaemonSet', name: 'archwright-agent' };
  putEvent(store, 'CredentialProblem', message, agents);
  const earlier = { ...agents, uid: 'another' };
  putEvent(store, 'FailedCreate', 'of an installation before this one', earlier);
  putEvent(store, 'CredentialProblem', 'the event exists even if it is solved', earlier);
  putGated(store, Date.now() - 185_000);
  const { code, out } = await status();
  t.equal(code, 1);
  for (const expected of [
    /archwright-webhook-b .* 000000000000 \(old\)/,
    /webhooks +waiting/,
    /certificates +the first expires in 3d \(archwright-controller-a, client\)/,
    /agents +2 of 3 ready/,
    /gated pods +2 lookup, for less than 10s\n +1 refused, for more than 5m\n +3 unauthorized, for more than 5m\n +shop\/web-0 since 3m/,
    /taints +held back: daemonsets \(1\)/,
    /misplaced pods +4/,
    /broken images +app:1 on arm64, until/,
    /credentials +1 problem\n/,
    /Look at:\n +archwright-webhook-b still has the configuration 0{12}; its ConfigMap has/,
    / {2}DaemonSet archwright-agent: 2 of 3 agents are ready\n/,
    / {2}the webhook configuration is not in force: waiting/,
    / {2}archwright-controller-a: its client certificate expires at /,
    / {2}3 pods gated for more than five minutes: unauthorized; archwright explain names/,
    / {2}1 pod gated for more than five minutes: the API server refuses to change them; their events/,
    / {2}taints are held back: daemonsets \(1\): kubectl get events -A \| grep TaintHeldBack\n/,
    / {2}4 misplaced pods/,
    / {2}n1: credentials are not used: .* is named wrongly\n/,
  ])
    like(t, out, expected);
  t.equal((await json()).findings.length, 9);
});

t.test('containers that end, and expired certificates', async (t) => {
  const { store, states, leader, refresh, status } = await setup(t);
  const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed' };
  const containers = {
    a: { state: { waiting }, lastState: { terminated: { exitCode: 2 } } },
    b: { state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } },
  };
  for (const [name, container] of Object.entries(containers)) {
    const pod = `archwright-webhook-${name}`;
    putPod(store, pod, 'webhook', {
      status: { conditions: [], containerStatuses: [{ name: 'webhook', ...container }] },
    });
    store.page(`${core}/pods/${pod}:8080/proxy/metrics`, undefined);
  }
  leader.more = (metrics) =>
    metrics.gauge(servingMetrics.certificateExpiry, { use: 'client' }).set((Date.now() - 3.5 * day) / 1000);
  states.delete('archwright-webhook-a');
  states.delete('archwright-webhook-b');
  await refresh();
  const { out } = await status();
  t.match(
    out,
    /webhook-a: CrashLoopBackOff \(last exit code 2\): its configuration is wrong; see its log\. Once it is right, delete the pod to start it at once\n/,
  );
  t.notMatch(out, /metrics of archwright-webhook/, 'a crash is the reason why they cannot be read');
  t.match(
    out,
    /webhook-b: the container ended \(last exit code 137\): it needed more memory than its limit; raise /,
  );
  t.match(out, /certificates +the first expired 3d ago \(archwright-controller-a, client\)/);
  t.match(
    out,
    /controller-a: its client certificate expired at .*; does a controller lead, and is its clock right\?/,
  );
});

t.test('another container of a replica that keeps it from starting', async (t) => {
  const { store, json } = await setup(t);
  const lastState = { terminated: { exitCode: 2 } };
  const crashing = { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState };
  const waiting = { name: 'webhook', state: { waiting: { reason: 'PodInitializing' } } };
  const done = { name: 'first', state: { terminated: { exitCode: 0 } } };
  putPod(store, 'archwright-webhook-a', 'webhook', {
    status: {
      phase: 'Pending',
      conditions: [],
      initContainerStatuses: [done, { name: 'vault', ...crashing }],
      containerStatuses: [waiting],
    },
  });
  putPod(store, 'archwright-webhook-b', 'webhook', {
    status: { conditions: [], containerStatuses: [{ name: 'mesh', ...crashing }] },
  });
  t.strictSame((await json()).findings, [
    'archwright-webhook-a: container vault: CrashLoopBackOff (last exit code 2): see its log',
    'archwright-webhook-b: container mesh: CrashLoopBackOff (last exit code 2): see its log',
    'no webhook is ready: new pods get no placement',
  ]);
});

t.test('a ConfigMap that is broken, or of a newer version', async (t) => {
  const { configure, json } = await setup(t);
  configure('webhookConfiguration = "archwright"\nnewerSetting = true\n');
  like(t, await json(), { webhooks: { registered: 2 } }, 'settings of another version are left out');
  configure('webhookConfiguration = "archwright"\npreferenceMode = "firm"\n');
  like(t, await json(), {
    code: 1,
    findings: [
      /^ConfigMap archwright\/archwright:2: preferenceMode must be .*; running replicas keep their last/,
      ...[0, 1, 2].map(() => / still has the configuration /),
    ],
  });
});

t.test('workloads of another program in the namespace do not count', async (t) => {
  const { store, json } = await setup(t);
  const labels = { ...labelsOf('agent'), 'app.kubernetes.io/part-of': 'monitoring' };
  const status = { desiredNumberScheduled: 3, numberReady: 0 };
  store.put(`${apps}/daemonsets/monitoring-agent`, { metadata: { labels }, spec: {}, status });
  like(t, await json(), { code: 0, agents: [{ daemonSet: 'archwright-agent' }], findings: [] });
});

t.test('a deleted webhook configuration, of which no leader has to tell', async (t) => {
  const { store, json } = await setup(t);
  store.remove(webhooks);
  like(t, await json(), { code: 1, findings: [/was deleted, so pods get no placement: run helm upgrade$/] });
});

t.test('without a ready webhook, or one that is registered, new pods get no placement', async (t) => {
  const { store, json } = await setup(t);
  store.put(webhooks, { webhooks: [] });
  like(t, (await json()).findings, [/has no webhooks, so new pods get no placement: the leader adds them/]);
  for (const [failurePolicy, effect] of [
    ['Ignore', 'get no placement'],
    ['Fail', 'are refused'],
  ] as const) {
    store.put(webhooks, { webhooks: [{ failurePolicy }] });
    for (const name of ['archwright-webhook-a', 'archwright-webhook-b'])
      putPod(store, name, 'webhook', { status: { conditions: [{ type: 'Ready', status: 'False' }] } });
    t.ok((await json()).findings.includes(`no webhook is ready: new pods ${effect}`));
  }
});

t.test('Deployments without pods, and why', async (t) => {
  const { store, json, status } = await setup(t);
  putGated(store, Date.now());
  const controller = `${apps}/deployments/archwright-controller`;
  const metadata = { labels: labelsOf('controller') };
  store.put(controller, { metadata, spec: { replicas: 0 }, status: { observedGeneration: 2 } });
  store.remove(`${core}/pods/archwright-controller-a`);
  const none =
    'Deployment archwright-controller has no pods, so gated pods wait, and certificates are not renewed';
  like(t, await json(), { code: 1, findings: [`${none}: it has 0 replicas in its spec`] });
  t.match((await status()).out, /gated pods +reasons not known\n +shop\/web-0 since/);

  store.put(controller, { metadata, spec: { replicas: 2 }, status: { observedGeneration: 3 } });
  const message =
    'Error creating: pods "archwright-controller-1-x" is forbidden: exceeded quota: q, requested: pods=1';
  putEvent(store, 'FailedCreate', message, { kind: 'ReplicaSet', name: 'archwright-controller-5564b85bdf' });
  like(t, await json(), { findings: [`${none}: FailedCreate: exceeded quota: q, requested: pods=1`] });

  for (const each of ['webhook-a', 'webhook-b', 'agent-x']) store.remove(`${core}/pods/archwright-${each}`);
  const { findings } = await json();
  t.match(findings[0], /^Deployment archwright-controller has no pods/);
  t.match(findings[1], /^Deployment archwright-webhook has no pods, so new pods are not placed: /);
  t.notMatch(findings.join(' '), /archwright does not run/);
});

t.test('forbidden reads and unreachable replicas are named', async (t) => {
  const { store, status } = await setup(t);
  store.fault(/mutatingwebhookconfigurations|\/nodes$|\/proxy\//, {
    status: 403,
    message: 'forbidden: User "jane" cannot',
  });
  const { code, out } = await status();
  t.equal(code, 0, 'no known problem');
  t.match(out, /CONFIGURATION\narchwright-webhook-a +node-1 +0\.1\.0 +yes +- +not known/);
  t.match(out, /webhooks +not known\n/);
  t.match(out, /Could not be read:\n {2}metrics of archwright-webhook-a: .*forbidden: User "jane" cannot/);
  t.match(out, / {2}webhooks: .*forbidden/);
  t.match(out, / {2}nodes: .*forbidden/);
});

t.test('without rights, nothing is said to be in order', async (t) => {
  const { store, status } = await setup(t);
  store.fault(/./, { status: 403, message: 'forbidden: User "jane" cannot' });
  const { code, out } = await status();
  t.equal(code, 1);
  t.match(
    out,
    /whether archwright works is not known: you may not list its pods in the namespace archwright\n/,
  );
  for (const subject of ['gated pods', 'taints', 'broken images', 'credentials', 'misplaced pods', 'nodes'])
    t.match(out, new RegExp(`^${subject} +not known$`, 'm'));
  t.match(out, /Could not be read:\n {2}pods: .*jane/);
});

t.test('exit codes of a missing installation and an unreachable cluster', async (t) => {
  const { store, status } = await setup(t);
  like(t, (await status('-n', 'archwright')).code, 0);
  const elsewhere = await status('--namespace', 'shop');
  like(t, elsewhere, {
    code: 1,
    out: /archwright does not run in the namespace shop; is it installed\? --namespace/,
  });
  store.fault(/./, { status: 503, message: 'etcd is away' });
  like(t, await status(), { code: 3, out: '', err: /archwright status: .*etcd is away/ });
});

t.test('--watch repeats until it is stopped', async (t) => {
  const { store, config } = await setup(t);
  const stop = new AbortController();
  const running = run(['status', '--kubeconfig', config, '--watch'], { stop: stop.signal });
  await store.until(() => store.received(/\/deployments$/).length === 2, 'the second round');
  stop.abort('SIGINT');
  const { code, out } = await running;
  t.equal(code, 130);
  t.match(out, /^REPLICA/);
});
