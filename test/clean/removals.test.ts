/** Removals of each kind of object, of archwright and of other programs, and restarts of workloads. */
import t from 'tap';
import { cleanOtherProgram, otherPrograms } from '../../src/clean/clean.ts';
import type { CleanReport } from '../../src/clean/run.ts';
import { done, gatesOf, podPath, stepIn, world, type World } from './support.ts';
import { like } from '../support/like.ts';

const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
/** Of what the controller made. */
const labels = { 'app.kubernetes.io/managed-by': 'archwright-controller' };
const taint = (key: string, value = 'arm64') => ({ key, value, effect: 'NoSchedule' });

t.test('our webhooks are removed from webhook configurations', async (t) => {
  const { store, clean } = await world(t);
  const put = (name: string, ...names: string[]) =>
    store.put(`${configurations}/${name}`, { webhooks: names.map((each) => ({ name: each })) });
  const namesIn = (name: string) => {
    const found = store.get(`${configurations}/${name}`) as { webhooks?: { name: string }[] } | undefined;
    return found?.webhooks?.map((each) => each.name);
  };
  put('named');
  put('all-ours', 'a.arch.example', 'b.arch.example');
  put('mixed', 'a.arch.example', 'x.other.example', 'b.arch.example', 'arch.example.other');
  put('others', 'x.other.example');
  put('empty');

  await clean({}, { webhookConfiguration: 'named' });
  t.equal(namesIn('named'), undefined);
  t.ok(namesIn('all-ours'), 'another configuration stays');
  put('named');
  store.fault(`GET ${configurations}/named`, { status: 403 });
  const blind = await clean({}, { webhookConfiguration: 'named' });
  t.equal(blind.complete, true, 'the right to delete is enough');
  t.equal(namesIn('named'), undefined);

  store.fault(`DELETE ${configurations}/all-ours`, {
    times: 1,
    before: () => void put('all-ours', 'a.arch.example', 'x.other.example'),
  });
  const why = 'has webhooks that are not ours; remove those that end with .arch.example';
  const failures = stepIn(await clean(), 'webhook configuration')?.failures ?? [];
  const reasons = failures.map(({ what, why: found }) => `${what.split(' ')[1]} ${found}`);
  t.strictSame(reasons.sort(), [`all-ours ${why}`, `mixed ${why}`]);
  store.remove(`${configurations}/mixed`);
  put('all-ours', 'a.arch.example');
  like(t, stepIn(await clean(), 'webhook configuration'), { done: 1, failures: [] });
  for (const name of ['others', 'empty']) t.ok(namesIn(name));
});

for (const [step, label, ours, theirs] of [
  ['agent nodes', 'arch.example/agent', 'true', 'false'],
  ['CPU levels', 'arch.example/amd64-level', 'v3', 'fast'],
] as const) {
  t.test(`the label ${label} is removed from nodes, but not with another writer's value`, async (t) => {
    const { store, clean } = await world(t);
    store.put('/api/v1/nodes/n1', { metadata: { labels: { [label]: ours, mine: 'yes' } } });
    store.put('/api/v1/nodes/n2', { metadata: { labels: { [label]: theirs } } });
    store.put('/api/v1/nodes/n3', {});
    t.equal(done(await clean({ dryRun: true }))[step], 1);
    t.equal(done(await clean())[step], 1);
    t.strictSame(store.get('/api/v1/nodes/n1')?.metadata.labels, { mine: 'yes' });
    t.strictSame(store.get('/api/v1/nodes/n2')?.metadata.labels, { [label]: theirs });
  });
}

t.test('our taints are removed', async (t) => {
  const { store, clean } = await world(t);
  const spec = { taints: [taint('other.example/x'), taint('arch.example/architecture')] };
  const metadata = { annotations: { 'arch.example/taint': 'arch.example/architecture' } };
  store.put('/api/v1/nodes/n1', { metadata, spec });
  store.put('/api/v1/nodes/n2', { metadata, spec });
  store.put('/api/v1/nodes/n3', { spec: { taints: [taint('other.example/x')] } });
  const dry = await clean({ dryRun: true });
  t.equal(done(dry)['taints'], 2);
  store.fault('PATCH /api/v1/nodes/n2', { status: 403, message: 'no right to patch' });
  like(t, stepIn(await clean(), 'taints'), {
    done: 1,
    failures: [{ what: 'taint of node n2', why: /no right to patch/ }],
  });
  t.strictSame(store.get('/api/v1/nodes/n1')?.spec, { taints: [taint('other.example/x')] });
});

t.test('objects that the controller created are removed', async (t) => {
  const { store, clean } = await world(t);
  const base = '/api/v1/namespaces/archwright';
  const ours = { metadata: { labels } };
  store.put(`${base}/secrets/archwright-ca`, ours);
  store.put(`${base}/secrets/archwright-agent-tls`, { metadata: { labels: { other: 'x' } } });
  store.put(`${base}/secrets/mine`, ours);
  store.put(`${base}/secrets/archwright-webhook-client-tls`, ours);
  store.put(`${base}/configmaps/archwright-broken-images`, ours);
  store.fault(`GET ${base}/secrets/archwright-webhook-tls`, { status: 403 });
  like(t, stepIn(await clean(), 'own objects'), {
    done: 3,
    failures: [{ what: 'Secret archwright/archwright-webhook-tls', why: /403/ }],
    notes: [/archwright-agent-tls stays/],
  });
  const secrets = store.list(`${base}/secrets`).map(({ metadata }) => metadata.name);
  t.strictSame(secrets, ['archwright-agent-tls', 'mine'], "other programs' objects stay");
  t.strictSame(store.list(`${base}/configmaps`), []);
});

t.test('published reports are removed', async (t) => {
  const { store, clean } = await world(t);
  const ours = { metadata: { labels } };
  const reports = (namespace: string): string =>
    `/apis/openreports.io/v1alpha1/namespaces/${namespace}/reports/`;
  store.put('/api/v1/namespaces/archwright/configmaps/archwright-report', ours);
  for (const namespace of ['shop', 'bank']) store.put(`${reports(namespace)}archwright-report`, ours);
  store.put(`${reports('shop')}other`, ours);
  store.put(`${reports('mine')}archwright-report`, { metadata: { labels: { other: 'x' } } });
  like(t, stepIn(await clean(), 'own objects'), { done: 3, failures: [] });
  const left = store
    .list('/apis/openreports.io/v1alpha1/reports')
    .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
  t.strictSame(left, ['mine/archwright-report', 'shop/other']);
  for (const status of [403, 404]) {
    const cleaned = await world(t);
    cleaned.store.fault(/ \/apis\/openreports/, { status });
    t.equal((await cleaned.clean()).complete, true, `${status}: nothing to remove`);
  }
});

t.test('an object that is replaced before its deletion stays', async (t) => {
  const { store, clean } = await world(t);
  const path = '/api/v1/namespaces/archwright/secrets/archwright-ca';
  store.put(path, { metadata: { uid: 'ours', labels } });
  store.fault(`DELETE ${path}`, {
    times: 1,
    before: () => void store.put(path, { metadata: { uid: 'theirs' } }),
  });
  await clean();
  like(t, store.get(path), { metadata: { uid: 'theirs' } });
  t.equal((await clean()).complete, true, 'and the next run does not mistake it for ours');
});

const theirGate = 'multiarch.openshift.io/scheduling-gate';
const ourGate = 'arch.example/scheduling-gate';

/** A cluster with leftovers of other programs, beside our gates. */
async function leftovers(t: Parameters<typeof world>[0]): Promise<World> {
  const here = await world(t);
  const put = (name: string, ...gates: string[]) =>
    here.store.put(podPath(name), {
      spec: { containers: [], schedulingGates: gates.map((gate) => ({ name: gate })) },
    });
  put('theirs', theirGate);
  put('both', ourGate, theirGate);
  put('ours', ourGate);
  here.store.put('/api/v1/nodes/n1', { spec: { taints: [taint('supported-arch'), taint('other')] } });
  return here;
}

function cleanOf({ clean }: World, program: string, dryRun = false): Promise<CleanReport> {
  const left = otherPrograms[program];
  if (!left) throw new TypeError(program);
  return clean({ dryRun }, {}, (options) => cleanOtherProgram(options, left));
}

t.test('it removes the gates of the multiarch-tuning-operator, and nothing else', async (t) => {
  const here = await leftovers(t);
  const { store } = here;
  const dry = await cleanOf(here, 'multiarch-tuning-operator', true);
  like(t, dry, { dryRun: true, steps: [{ step: 'gates', done: 2 }] });
  t.strictSame(store.writes(), []);
  const end = store.fault(/^PATCH .*pods\/theirs$/, { status: 403, message: 'pods is forbidden' });
  like(t, await cleanOf(here, 'multiarch-tuning-operator'), {
    complete: false,
    steps: [{ step: 'gates', done: 1, failures: [{ what: 'pod shop/theirs', why: /forbidden/ }] }],
  });
  end();
  like(t, await cleanOf(here, 'multiarch-tuning-operator'), {
    complete: true,
    steps: [{ step: 'gates', done: 1, failures: [] }],
  });
  t.strictSame(gatesOf(store, 'theirs'), []);
  t.strictSame(gatesOf(store, 'both'), [ourGate]);
  t.strictSame(gatesOf(store, 'ours'), [ourGate]);
  t.strictSame(store.get('/api/v1/nodes/n1')?.spec, { taints: [taint('supported-arch'), taint('other')] });
});

t.test('it removes the taints of archaware-controller, and nothing else', async (t) => {
  const here = await leftovers(t);
  like(t, await cleanOf(here, 'archaware-controller'), {
    complete: true,
    steps: [{ step: 'taints', done: 1 }],
  });
  t.strictSame(here.store.get('/api/v1/nodes/n1')?.spec, { taints: [taint('other')] });
  t.strictSame(gatesOf(here.store, 'both'), [ourGate, theirGate]);
});

const ours = { key: 'arch.example/architecture', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
const apps = '/apis/apps/v1/namespaces/shop';

function owned(kind: string, name: string, apiVersion = 'apps/v1') {
  return { ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true }] };
}

function running(metadata: object, spec: object = { tolerations: [ours] }, status: object = {}): object {
  const onNode = { nodeName: 'n1', containers: [], ...spec };
  return { metadata, spec: onNode, status: { phase: 'Running', ...status } };
}

/** Deployments `web` and `other` with one ReplicaSet each, and a StatefulSet `db`. */
async function workloads(t: Parameters<typeof world>[0]) {
  const test = await world(t);
  for (const name of ['web', 'other']) {
    test.store.put(`${apps}/deployments/${name}`, { spec: {} });
    test.store.put(`${apps}/replicasets/${name}-1`, { metadata: owned('Deployment', name) });
  }
  test.store.put(`${apps}/statefulsets/db`, { spec: {} });
  const restarted = (): readonly string[] =>
    test.store.received(/^PATCH .*apps/).map(({ path }) => path.split('/').slice(-2).join('/'));
  return { ...test, restarted };
}

t.test('it restarts the workloads whose pods have our tolerations, and no others', async (t) => {
  const { store, clean, clock, restarted } = await workloads(t);
  const [web, other] = [owned('ReplicaSet', 'web-1'), owned('ReplicaSet', 'other-1')];
  for (const name of ['ours', 'again']) store.put(podPath(name), running(web));
  const added = { tolerations: [{ ...ours, key: 'kubernetes.io/arch', value: 'arm64' }] };
  const annotations = { 'arch.example/decision': JSON.stringify({ v: 1, imagesKey: 'x', added }) };
  store.put(podPath('recorded'), running({ ...owned('StatefulSet', 'db'), annotations }, added));
  const another = { tolerations: [{ ...added.tolerations[0], value: 's390x' }] };
  store.put(podPath('annotated-only'), running({ ...other, annotations }, another));
  store.put(podPath('none'), running(other, {}));
  store.put(podPath('own'), running(other, added));
  store.put(podPath('waits'), running(other, { nodeName: '', tolerations: [ours] }));
  for (const phase of ['Succeeded', 'Failed'])
    store.put(podPath(phase.toLowerCase()), running(other, undefined, { phase }));
  store.put(podPath('going'), running({ ...other, deletionTimestamp: '2026-01-01T00:00:00Z' }));
  store.put(podPath('alone'), running({}));
  store.put(podPath('daemon'), running(owned('DaemonSet', 'd')));
  store.put(podPath('job'), running(owned('Job', 'j', 'batch/v1')));
  store.put(podPath('mirror'), running(owned('Node', 'n1', 'v1')));
  store.put(podPath('unknown'), running(owned('Rollout', 'r', 'argoproj.io/v1')));
  store.put(podPath('bare'), running(owned('ReplicaSet', 'gone')));

  const dry = await clean({ dryRun: true, restartPods: true });
  t.equal(done(dry)['restarted workloads'], 2);
  t.strictSame(restarted(), []);
  const began = clock.now();
  const report = await clean({ restartPods: true });
  t.equal(report.complete, true);
  t.strictSame(restarted().toSorted(), ['deployments/web', 'statefulsets/db']);
  const template = store.get(`${apps}/deployments/web`)?.spec as {
    readonly template?: { readonly metadata?: { readonly annotations?: Record<string, string> } };
  };
  const at = template.template?.metadata?.annotations?.['kubectl.kubernetes.io/restartedAt'] ?? '';
  t.ok(Date.parse(at) >= began && Date.parse(at) <= clock.now(), at);
  t.strictSame(stepIn(report, 'restarted workloads')?.notes.toSorted(), [
    'pod shop/alone stays: it has no controller that would replace it',
    'pods of DaemonSet shop/d stay',
    'pods of Job shop/j stay',
    'pods of Node shop/n1 stay',
    'pods of ReplicaSet shop/gone stay',
    'pods of Rollout shop/r stay',
  ]);

  await clean();
  t.equal(restarted().length, 2, 'only on request');
});

t.test('workloads restart one after the other, and a refused one does not stop the others', async (t) => {
  const { store, clean, elapsed, lines, restarted } = await workloads(t);
  for (const name of ['web', 'other']) store.put(podPath(name), running(owned('ReplicaSet', `${name}-1`)));
  store.put(podPath('db-0'), running(owned('StatefulSet', 'db')));
  const at: number[] = [];
  const before = (): void => void at.push(elapsed());
  store.fault(/^PATCH .*(?:other|db)$/, { before });
  store.fault(`PATCH ${apps}/deployments/web`, { status: 403, message: 'no right to patch', before });
  const report = await clean({ restartPods: true }, { evictionsPerMinute: 6 });
  t.ok(lines.includes('restarted workloads: 3 to restart'));
  t.equal(restarted().length, 3);
  for (const [index, when] of at.entries()) if (index > 0) t.ok(when - (at[index - 1] ?? 0) >= 10_000);
  const { done: count, failures } = stepIn(report, 'restarted workloads') ?? {};
  t.equal(count, 2);
  t.strictSame(failures, [{ what: 'Deployment shop/web', why: '403 no right to patch' }]);
});
