/** `archwright status` on an installation that works, and on one that does not. */
import t, { type Test } from 'tap';
import type { Status } from '../../cmd/status/status.ts';
import { controllerMetrics } from '../../src/controller/metrics.ts';
import { servingMetrics } from '../../src/serving/metrics.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { core, installation } from './installation.ts';
import { run } from './run.ts';
import { files, kubeconfig } from './world.ts';

const lease = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';
const webhooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
const day = 86_400_000;

function set(metrics: Metrics, name: string, value: number, labels: Record<string, string> = {}): void {
  const spec = controllerMetrics.find((each) => each.name === name);
  if (!spec) throw new Error(name);
  metrics.gauge(spec, labels).set(value);
}

async function setup(t: Test) {
  const world = await installation(t);
  const { store, states, configure, refresh } = world;
  const hash = configure(
    'webhookConfiguration = "archwright"\nbrokenImagesName = "archwright-broken-images"\n',
  );
  for (const state of states.values()) {
    state.hash = hash;
    state.more = (metrics) =>
      metrics
        .gauge(servingMetrics.certificateExpiry, { use: 'server' })
        .set((Date.now() + 60.5 * day) / 1000);
  }
  const leader = states.get('archwright-controller-a');
  if (!leader) throw new Error('no controller');
  leader.more = (metrics) => {
    set(metrics, 'archwright_webhook_configuration', 1, { state: 'in-force' });
    set(metrics, 'archwright_misplaced_pods', 0);
  };
  await refresh();
  store.put(lease, { spec: { holderIdentity: 'archwright-controller-a_1', leaseDurationSeconds: 15 } });
  store.put(webhooks, { webhooks: [{ failurePolicy: 'Ignore' }, { failurePolicy: 'Ignore' }] });
  store.put('/api/v1/nodes/n1', {});
  store.put('/api/v1/nodes/n2', {});
  const { config } = files(t, { config: kubeconfig(store.access.server) });
  const status = (...args: readonly string[]) => run(['status', '--kubeconfig', config, ...args]);
  const json = async () => {
    const { out, code } = await status('-o', 'json');
    return { code, ...(JSON.parse(out) as Status) };
  };
  return { ...world, hash, leader, status, json };
}

t.test('the chart may have other names: its namespace is that of its ConfigMap', async (t) => {
  const { store, json } = await setup(t);
  store.remove(lease);
  store.put(`${core}/configmaps/placer`, {
    metadata: { labels: { 'app.kubernetes.io/part-of': 'archwright', 'app.kubernetes.io/name': 'placer' } },
    data: { 'archwright.toml': 'leaseName = "placer-controller"\n' },
  });
  t.match(await json(), { code: 0, namespace: 'archwright', findings: [] });
});

t.test('everything works', async (t) => {
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
  t.match(await json(), { code: 0, namespace: 'archwright', findings: [], unread: [] });
});

t.test('what has to be looked at', async (t) => {
  const { store, states, leader, put, refresh, status, json } = await setup(t);
  leader.more = (metrics) => {
    set(metrics, 'archwright_webhook_configuration', 1, { state: 'waiting' });
    set(metrics, 'archwright_gated_pods', 3, { age: 'older', reason: 'unauthorized' });
    set(metrics, 'archwright_gated_pods', 2, { age: '10s', reason: 'lookup' });
    set(metrics, 'archwright_taint_blockers', 1, { reason: 'daemonsets' });
    set(metrics, 'archwright_misplaced_pods', 4);
    metrics.gauge(servingMetrics.certificateExpiry, { use: 'client' }).set((Date.now() + 3.5 * day) / 1000);
  };
  const old = states.get('archwright-webhook-b');
  if (old) old.hash = '000000000000';
  await refresh();
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 3, numberReady: 2 });
  store.put(`${core}/configmaps/archwright-broken-images`, {
    data: {
      [`sha256-${'a'.repeat(64)}.arm64`]: JSON.stringify({
        image: 'app:1',
        namespaces: ['shop'],
        until: new Date(Date.now() + day).toISOString(),
      }),
    },
  });
  store.put(`${core}/events/creds`, {
    type: 'Warning',
    reason: 'CredentialProblem',
    message: 'n1: credentials are not used: /etc/creds/127.0.0.1_5000.toml is named wrongly',
    involvedObject: { kind: 'DaemonSet', name: 'archwright-agent' },
    lastTimestamp: new Date().toISOString(),
  });
  for (const reason of ['CredentialProblem', 'FailedCreate'])
    store.put(`${core}/events/earlier-${reason}`, {
      type: 'Warning',
      reason,
      message: 'of an installation before this one',
      involvedObject: { kind: 'DaemonSet', name: 'archwright-agent', uid: 'another' },
      lastTimestamp: new Date().toISOString(),
    });
  store.put('/api/v1/namespaces/shop/pods/web-0', {
    metadata: { creationTimestamp: new Date(Date.now() - 185_000).toISOString() },
    spec: { containers: [], schedulingGates: [{ name: 'arch.example/scheduling-gate' }] },
    status: { phase: 'Pending' },
  });
  const { code, out } = await status();
  t.equal(code, 1);
  for (const expected of [
    /archwright-webhook-b .* 000000000000 \(old\)/,
    /webhooks +waiting/,
    /certificates +the first expires in 3d \(archwright-controller-a, client\)/,
    /agents +2 of 3 ready/,
    /gated pods +2 lookup, for less than 10s\n +3 unauthorized, for more than 5m\n +shop\/web-0 since 3m/,
    /taints +held back: daemonsets \(1\)/,
    /misplaced pods +4/,
    /broken images +app:1 on arm64, until/,
    /credentials +1 problem\n/,
    /Look at:\n +archwright-webhook-b has the configuration 0{12}, not yet/,
    / {2}DaemonSet archwright-agent: 2 of 3 agents are ready\n/,
    / {2}the webhook configuration is not in force: waiting/,
    / {2}archwright-controller-a: its client certificate expires at /,
    / {2}3 pods gated for more than five minutes: unauthorized/,
    / {2}taints are held back: daemonsets \(1\)/,
    / {2}4 misplaced pods/,
    / {2}n1: credentials are not used: .* is named wrongly\n/,
  ])
    t.match(out, expected);
  t.equal((await json()).findings.length, 8);
  const { more } = leader;
  leader.more = (metrics) => {
    more?.(metrics);
    set(metrics, 'archwright_credential_problems', 0);
  };
  await refresh();
  t.match(await json(), { credentialProblems: [] }, 'solved: the event stays for some time');
});

t.test('what may not be read, or does not answer, is named', async (t) => {
  const { store, status, json } = await setup(t);
  const allowed = store.fault(/mutatingwebhookconfigurations|\/nodes$|\/proxy\//, {
    status: 403,
    message: 'forbidden: User "jane" cannot',
  });
  const { code, out } = await status();
  t.equal(code, 0, 'nothing is known to be wrong');
  t.match(out, /CONFIGURATION\narchwright-webhook-a +node-1 +0\.1\.0 +yes +- +not known/);
  t.match(out, /webhooks +not known\n/);
  t.match(out, /Could not be read:\n {2}metrics of archwright-webhook-a: .*forbidden: User "jane" cannot/);
  t.match(out, / {2}webhooks: .*forbidden/);
  t.match(out, / {2}nodes: .*forbidden/);
  allowed();
  store.remove(webhooks);
  t.match((await json()).unread, [/^webhooks: .*not found/]);
});

t.test('exit codes: wrong usage, no archwright, no answer', async (t) => {
  const { store, status } = await setup(t);
  t.match(await status('now'), { code: 2, err: /takes no arguments, not now/ });
  t.match(await status('-o', 'yaml'), { code: 2, err: /--output must be/ });
  const elsewhere = await status('--namespace', 'shop');
  t.match(elsewhere, { code: 1, out: /no archwright runs in the namespace shop; set --namespace/ });
  store.fault(/./, { status: 503, message: 'etcd is away' });
  t.match(await status(), { code: 3, out: '', err: /the cluster does not answer: .*etcd is away/ });
});

t.test('--watch shows it until it is stopped', async (t) => {
  const { store } = await setup(t);
  const { config } = files(t, { config: kubeconfig(store.access.server) });
  const stop = new AbortController();
  const running = run(['status', '--kubeconfig', config, '--watch'], { stop: stop.signal });
  await store.until(() => store.asked(/\/deployments$/).length === 2, 'the second look');
  stop.abort('SIGINT');
  const { code, out } = await running;
  t.equal(code, 130);
  t.match(out, /^REPLICA/);
});
