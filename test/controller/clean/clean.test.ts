import t from 'tap';
import { isCleanHolder } from '../../../src/controller/clean/lease-identity.ts';
import { keys } from '../../../src/names/keys.ts';
import {
  done,
  gated,
  gatesOf,
  heldBy,
  holderOf,
  leasePath,
  podPath,
  webhooksPath,
  world,
} from './support.ts';

const ours = { webhooks: [{ name: 'pods.arch.example' }] };
const configs = '/apis/arch.example/v1alpha1/clusterpodplacementconfigs';

t.test('removes all that is ours, in order, and nothing else', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  store.put(webhooksPath, ours);
  store.put(podPath('a'), gated('other.example/x'));
  store.put(podPath('b'), gated());
  store.put(podPath('free'), { spec: { containers: [] } });
  store.put(`${configs}/cluster`, { metadata: { finalizers: ['other.example/x', 'arch.example/gates'] } });
  const untouched = store.get(podPath('free'))?.metadata.resourceVersion;

  const report = await clean();
  t.equal(report.complete, true);
  t.same(done(report), { lease: 1, 'webhook configuration': 1, gates: 2, 'custom resources': 1 });
  t.same(gatesOf(store, 'a'), ['other.example/x'], 'gates of others stay');
  t.same(gatesOf(store, 'b') ?? [], []);
  t.equal(store.get(podPath('free'))?.metadata.resourceVersion, untouched);
  t.same(store.get(`${configs}/cluster`)?.metadata.finalizers, ['other.example/x']);
  t.equal(store.get(webhooksPath), undefined);
  t.equal(store.get(leasePath), undefined);
  t.same(
    store.writes().map(({ verb, path }) => `${verb} ${path}`),
    [
      `PATCH ${leasePath}`,
      `DELETE ${webhooksPath}`,
      `PATCH ${podPath('a')}`,
      `PATCH ${podPath('b')}`,
      ...store
        .asked(/^PATCH .*leases/)
        .slice(1)
        .map(() => `PATCH ${leasePath}`),
      `PATCH ${configs}/cluster`,
      `DELETE ${leasePath}`,
    ],
  );
});

t.test('a clean cluster stays as it is', async (t) => {
  const { store, clean, elapsed } = await world(t);
  const report = await clean();
  t.equal(report.complete, true);
  t.same(done(report), { lease: 1 });
  t.equal(store.get(leasePath), undefined, 'the Lease that it made is gone again');
  t.ok(elapsed() < 10_000, 'and it does not wait for a leader that nobody saw');
});

t.test('pods that an API server still gates while it does not know better', async (t) => {
  const { store, clean, elapsed } = await world(t);
  store.put(webhooksPath, ours);
  let looks = 0;
  store.fault('GET /api/v1/pods', {
    before: () => {
      looks += 1;
      if (looks === 3) store.put(podPath('late'), gated());
    },
  });
  const report = await clean();
  t.equal(report.complete, true);
  t.same(gatesOf(store, 'late') ?? [], []);
  t.ok(elapsed() >= 5000);
});

t.test('as long as a deposed leader may write, it is looked for what it writes', async (t) => {
  for (const [holder, renewedAgoMs, waits] of [
    ['leader-1', 0, true],
    ['leader-1', 40_000, true],
    ['leader-1', 3_600_000, false],
    ['', 0, false],
    ['archwright-clean/12345678', 1000, true],
  ] as const) {
    const { store, clean, elapsed } = await world(t);
    store.put(leasePath, heldBy(holder, renewedAgoMs));
    store.put(webhooksPath, ours);
    store.fault('GET /api/v1/pods', {
      before: () => {
        if (elapsed() >= 10_000 && !store.get(webhooksPath)) store.put(webhooksPath, ours);
      },
      times: 12,
    });
    const report = await clean();
    t.equal(elapsed() >= 15_000, waits, `${holder} ${renewedAgoMs}`);
    t.equal(report.complete, true);
    t.equal(store.get(webhooksPath), undefined);
  }
});

t.test('gates that never end', async (t) => {
  const { store, clean, elapsed } = await world(t);
  let count = 0;
  store.fault('GET /api/v1/pods', { before: () => void store.put(podPath(`p${(count += 1)}`), gated()) });
  const report = await clean();
  t.equal(report.complete, false);
  t.match(report.steps.find(({ step }) => step === 'gates')?.failures, [{ why: /another archwright/ }]);
  t.ok(elapsed() < 120_000);
});

t.test('a dry run changes nothing', async (t) => {
  const { store, clean, lines } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  store.put(webhooksPath, ours);
  store.put(podPath('a'), gated());
  store.put(`${configs}/cluster`, { metadata: { finalizers: ['arch.example/gates'] } });
  const version = store.version();
  const report = await clean({ dryRun: true });
  t.equal(store.version(), version);
  t.same(store.writes(), []);
  t.same(done(report), { 'webhook configuration': 1, gates: 1, 'custom resources': 1 });
  t.match(lines.join('\n'), /would change pod shop\/a/);
  t.match(lines.join('\n'), /held by leader-1/);
});

t.test('what is forbidden is told, and does not keep the rest from being removed', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  store.put(webhooksPath, ours);
  store.put(podPath('a'), gated());
  store.put(podPath('b'), gated());
  store.fault(`DELETE ${webhooksPath}`, { status: 403, message: 'no right to delete' });
  store.fault(`PATCH ${podPath('a')}`, { status: 403, message: 'no right to patch' });
  store.fault(/^GET .*clusterpodplacementconfigs/, { status: 403 });
  const report = await clean();
  t.equal(report.complete, false);
  t.match(
    report.steps.flatMap(({ failures }) => failures),
    [
      { what: 'MutatingWebhookConfiguration archwright', why: '403 no right to delete' },
      { what: 'pod shop/a', why: /no right to patch/ },
      { what: /clusterpodplacementconfigs/ },
      { what: 'certificates', why: /kept while there may be a webhook configuration/ },
    ],
    'each of them once',
  );
  t.same(gatesOf(store, 'b') ?? [], []);
  t.equal(holderOf(store), '', 'controllers may take their work up again');
});

t.test('what fails at one look and not at the next', async (t) => {
  const { store, clean } = await world(t);
  store.put(webhooksPath, ours);
  store.put(podPath('a'), gated());
  store.fault(`PATCH ${podPath('a')}`, { status: 403, times: 1 });
  store.fault(/^GET .*mutatingwebhookconfigurations/, { status: 403, times: 1 });
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.equal(store.get(webhooksPath), undefined);
  t.same(gatesOf(store, 'a') ?? [], []);
});

t.test('without the right to the Lease the rest is removed too', async (t) => {
  const { store, clean } = await world(t);
  store.put(podPath('a'), gated());
  store.fault(/leases/, { status: 403 });
  const report = await clean();
  t.equal(report.complete, false);
  t.same(gatesOf(store, 'a') ?? [], []);
});

t.test('a pod that changes meanwhile, goes away, or lost its gate', async (t) => {
  const { store, clean } = await world(t);
  for (const name of ['changed', 'gone', 'opened', 'busy'])
    store.put(podPath(name), gated('other.example/x'));
  const once = (name: string, before: () => void, times = 1) =>
    store.fault(`PATCH ${podPath(name)}`, { times, before });
  once('changed', () => {
    store.put(podPath('changed'), gated('other.example/x', 'other.example/y'));
  });
  once('gone', () => store.remove(podPath('gone')));
  once('opened', () => {
    store.put(podPath('opened'), { spec: { containers: [], schedulingGates: [] } });
  });
  once('busy', () => void store.put(podPath('busy'), gated()), 3);
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.same(gatesOf(store, 'changed'), ['other.example/x', 'other.example/y']);
  t.equal(gatesOf(store, 'gone'), undefined);
  t.same(gatesOf(store, 'busy') ?? [], []);
});

t.test('storms: 429, 500, lost answers, pages that expire', async (t) => {
  const { store, clean, elapsed } = await world(t);
  const pods = Array.from({ length: 1200 }, (_, index) => `p${index}`);
  for (const name of pods) store.put(podPath(name), gated());
  store.put(webhooksPath, ours);
  store.fault(`PATCH ${podPath('p1')}`, { status: 429, retryAfter: 3, times: 2 });
  store.fault(`PATCH ${podPath('p2')}`, { status: 500, times: 4 });
  store.fault(`PATCH ${podPath('p3')}`, { lost: true, times: 1 });
  store.fault(`DELETE ${webhooksPath}`, { lost: true, times: 1 });
  let pages = 0;
  store.fault('GET /api/v1/pods', {
    before: () => ((pages += 1) === 2 ? store.compact() : undefined),
    times: 5,
  });
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.ok(elapsed() >= 5000);
  t.ok(pods.every((name) => (gatesOf(store, name) ?? []).length === 0));
  const limits = store.asked('GET /api/v1/pods').map(({ query }) => query.get('limit'));
  t.ok(limits.every((limit) => limit === '500'));
});

t.test('pods and nodes so large that a page of them is too much', async (t) => {
  const { store, clean } = await world(t);
  const annotations = { large: 'x'.repeat(50_000) };
  const metadata = { metadata: { annotations } };
  for (let n = 0; n < 350; n += 1) {
    store.put(podPath(`p${n}`), n % 100 === 99 ? { ...gated(), ...metadata } : { ...metadata, spec: {} });
    const taints = [{ key: 'arch.example/architecture', value: 'arm64', effect: 'NoSchedule' }];
    const status = { nodeInfo: { architecture: 'arm64' } };
    store.put(`/api/v1/nodes/n${n}`, { ...metadata, spec: { taints: n === 349 ? taints : [] }, status });
  }
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.match(done(report), { gates: 3, taints: 1 });
});

t.test('killed in the middle, the next run goes on', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  store.put(webhooksPath, ours);
  for (const name of ['a', 'b', 'c']) store.put(podPath(name), gated());
  const stop = new AbortController();
  store.fault(/^PATCH .*pods\/b$/, { times: 1, before: () => stop.abort(new Error('killed')), lost: true });
  await t.rejects(clean({ signal: stop.signal }), /killed/);
  t.ok(store.get(leasePath), 'its end is no success');
  const report = await clean();
  t.equal(report.complete, true);
  t.same(
    ['a', 'b', 'c'].flatMap((name) => gatesOf(store, name) ?? []),
    [],
  );
  t.equal(store.get(leasePath), undefined);
});

t.test('while it works it holds the Lease, and ends when another takes it', async (t) => {
  const { store, clean, elapsed } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  let renewals = 0;
  let seen: string | undefined;
  store.fault(`PATCH ${leasePath}`, {
    before: () => {
      renewals += 1;
      if (renewals === 2) seen = holderOf(store);
      if (renewals === 3) store.put(leasePath, heldBy('archwright-clean/another'));
    },
  });
  await t.rejects(clean(), { code: 'lease-lost', message: /archwright-clean\/another/ });
  t.ok(isCleanHolder(seen));
  t.ok(elapsed() <= 15_000);
  t.match(store.get(leasePath), heldBy('archwright-clean/another'), 'which is left to the other');
});

t.test('a Lease that a leader released is held for longer than the second that it says', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
  let seen: unknown;
  store.fault('GET /api/v1/pods', { before: () => void (seen ??= store.get(leasePath)?.spec) });
  t.equal((await clean()).complete, true);
  t.match(seen, { holderIdentity: /^archwright-clean\//, leaseDurationSeconds: 15 });
});

t.test('no answer for the whole duration of the Lease', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  let renewals = 0;
  store.fault((request) => request.path === leasePath && request.verb === 'PATCH' && (renewals += 1) > 1, {
    status: 503,
  });
  await t.rejects(clean(), { code: 'lease-lost' });
});

t.test('somebody else changed the Lease without taking it', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  let renewals = 0;
  store.fault(`PATCH ${leasePath}`, {
    before: () => {
      renewals += 1;
      const lease = store.get(leasePath);
      if (renewals === 2 && lease)
        store.put(leasePath, { ...lease, metadata: { ...lease.metadata, labels: { a: 'b' } } });
    },
  });
  t.equal((await clean()).complete, true);
});

t.test('a webhook that others add while ours are removed stays', async (t) => {
  const { store, clean } = await world(t);
  const names = (list: string[]) => ({ webhooks: list.map((name) => ({ name })) });
  store.put(webhooksPath, names(['a.arch.example']));
  store.fault(`DELETE ${webhooksPath}`, {
    times: 1,
    before: () => void store.put(webhooksPath, names(['a.arch.example', 'x.other.example'])),
  });
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.match(store.get(webhooksPath), { webhooks: [{ name: 'x.other.example' }] });
  t.equal(done(report)['webhook configuration'], 1);
});

t.test('webhook configurations', async (t) => {
  const base = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  const { store, clean } = await world(t);
  const webhook = (name: string) => ({ name });
  store.put(`${base}/named`, { webhooks: [] });
  store.put(`${base}/all-ours`, { webhooks: ['a.arch.example', 'b.arch.example'].map(webhook) });
  store.put(`${base}/mixed`, {
    webhooks: ['a.arch.example', 'x.other.example', 'b.arch.example', 'arch.example.other'].map(webhook),
  });
  store.put(`${base}/others`, { webhooks: ['x.other.example'].map(webhook) });
  store.put(`${base}/empty`, {});

  await clean({}, { webhookConfiguration: 'named' });
  t.equal(store.get(`${base}/named`), undefined);
  t.ok(store.get(`${base}/all-ours`), 'where one is named, it is the one');
  store.put(`${base}/named`, {});
  store.fault(`GET ${base}/named`, { status: 403 });
  const blind = await clean({}, { webhookConfiguration: 'named' });
  t.equal(blind.complete, true, 'the right to delete is enough');
  t.equal(store.get(`${base}/named`), undefined);

  const report = await clean();
  t.same(done(report)['webhook configuration'], 2);
  t.equal(store.get(`${base}/all-ours`), undefined);
  t.match(store.get(`${base}/mixed`), {
    webhooks: [{ name: 'x.other.example' }, { name: 'arch.example.other' }],
  });
  t.ok(store.get(`${base}/others`));
  t.ok(store.get(`${base}/empty`));
});

t.test('taints', async (t) => {
  const { store, clean } = await world(t);
  const taint = (key: string) => ({ key, value: 'arm64', effect: 'NoSchedule' });
  const spec = { taints: [taint('other.example/x'), taint('arch.example/architecture')] };
  const metadata = { annotations: { 'arch.example/taint': 'arch.example/architecture' } };
  store.put('/api/v1/nodes/n1', { metadata, spec });
  store.put('/api/v1/nodes/n2', { metadata, spec });
  store.put('/api/v1/nodes/n3', { spec: { taints: [taint('other.example/x')] } });
  const dry = await clean({ dryRun: true });
  t.equal(done(dry)['taints'], 2);
  store.fault('PATCH /api/v1/nodes/n2', { status: 403, message: 'no right to patch' });
  const report = await clean();
  t.match(
    report.steps.find(({ step }) => step === 'taints'),
    {
      done: 1,
      failures: [{ what: 'node n2', why: /no right to patch/ }],
    },
  );
  t.same(store.get('/api/v1/nodes/n1')?.spec, { taints: [taint('other.example/x')] });
});

t.test('what the controller created', async (t) => {
  const { store, clean } = await world(t);
  const base = '/api/v1/namespaces/archwright';
  const ours = { metadata: { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } } };
  store.put(`${base}/secrets/archwright-ca`, ours);
  store.put(`${base}/secrets/archwright-agent-tls`, { metadata: { labels: { other: 'x' } } });
  store.put(`${base}/secrets/mine`, ours);
  store.put(`${base}/secrets/archwright-webhook-client-tls`, ours);
  store.put(`${base}/configmaps/archwright-broken-images`, ours);
  store.fault(`GET ${base}/secrets/archwright-webhook-tls`, { status: 403 });
  const report = await clean();
  t.equal(done(report)['own objects'], 3);
  t.match(
    report.steps.find(({ step }) => step === 'own objects'),
    {
      failures: [{ what: 'Secret archwright/archwright-webhook-tls', why: /403/ }],
      notes: [/archwright-agent-tls stays/],
    },
  );
  t.same(
    store.list(`${base}/secrets`).map(({ metadata }) => metadata.name),
    ['archwright-agent-tls', 'mine'],
    'what others made stays',
  );
  t.same(store.list(`${base}/configmaps`), []);
});

t.test('what another one puts in the place of ours before it is deleted stays', async (t) => {
  const { store, clean } = await world(t);
  const path = '/api/v1/namespaces/archwright/secrets/archwright-ca';
  const labels = { 'app.kubernetes.io/managed-by': 'archwright-controller' };
  store.put(path, { metadata: { uid: 'ours', labels } });
  store.fault(`DELETE ${path}`, {
    times: 1,
    before: () => void store.put(path, { metadata: { uid: 'theirs' } }),
  });
  await clean();
  t.match(store.get(path), { metadata: { uid: 'theirs' } });
  t.equal((await clean()).complete, true, 'and the next run does not mistake it for ours');
});

t.test('the name of our gate', (t) => {
  t.equal(keys.gate, 'arch.example/scheduling-gate');
  t.end();
});
