/** `archwright report --publish` writes a ConfigMap, and Reports of OpenReports. */
import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { configMapOf, publishReports, resultsOf } from '../../../cmd/report/publish.ts';
import { reportOf } from '../../../cmd/report/contents.ts';
import { connectedStore } from '../../kube/support.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { judgedPod, largeCluster } from './judged-cluster.ts';
import { putPod, shop, startCluster } from './cluster.ts';
import type { Result } from '../run.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

interface ConfigMap {
  readonly metadata: object;
  readonly data: Readonly<Record<string, string>>;
  readonly binaryData: Readonly<Record<string, string>>;
}

const release = '/api/v1/namespaces/archwright/configmaps/archwright';
const published = '/api/v1/namespaces/archwright/configmaps/archwright-report';
const reports = '/apis/openreports.io/v1alpha1';
const reportIn = (namespace: string): string =>
  `${reports}/namespaces/${namespace}/reports/archwright-report`;
const ours = { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } };

/** Two namespaces with a pod each. */
async function cluster(t: Test) {
  const open = await shop(t);
  const { store, report: fromOutside } = await startCluster(t);
  store.put(release, { data: { 'archwright.toml': '' } });
  const put = (namespace: string, name: string, spec: object = {}): void =>
    putPod(store, `${namespace}/${name}`, [`${open.host}/${name}:1`], { spec });
  put('shop', 'both');
  put('bank', 'old');
  const report = (...args: readonly string[]): Promise<Result> =>
    fromOutside('--local', '--release', 'archwright/archwright', ...args);
  return { store, put, report, fromOutside };
}

const unpacked = ({ binaryData }: ConfigMap, name: string): string =>
  gunzipSync(Buffer.from(binaryData[name] ?? '', 'base64')).toString('utf8');

function changes(store: KubeStore): string[] {
  return store.writes().map(({ verb, path }) => `${verb} ${path}`);
}

t.test('a ConfigMap and a Report per namespace have the same figures as the command', async (t) => {
  const { store, put, report } = await cluster(t);
  const { code, out, err } = await report('--publish');
  t.equal(code, 0, err);
  t.equal(out, '');
  t.match(err, /ConfigMap archwright\/archwright-report written\n.*Reports: 2 written, 0 deleted\n/);
  const first = store.get(published) as unknown as ConfigMap;
  like(t, first.metadata, ours);
  const json = unpacked(first, 'report.json.gz');
  t.equal(json, (await report('-o', 'json')).out);
  const summary = JSON.parse(first.data['summary.json'] ?? '') as Record<string, unknown>;
  like(t, summary, { architecture: 'arm64', version: String, made: String, leftOut: [] });
  t.strictSame(summary['totals'], (JSON.parse(json) as Record<string, unknown>)['totals']);
  t.match(unpacked(first, 'report.html.gz'), /<title>Pods that can run on arm64<\/title>/);
  like(t, store.get(reportIn('shop')), {
    metadata: ours,
    source: 'archwright',
    scope: { kind: 'Namespace', name: 'shop' },
    summary: { pass: 1, fail: 0, warn: 0, error: 0, skip: 0 },
    results: [
      {
        policy: 'runs-on-arm64',
        result: 'pass',
        resources: [{ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'both' }],
        properties: { pods: '1', on: 'amd64', cpu: '0.5' },
      },
    ],
  });
  like(t, store.get(reportIn('bank')), {
    summary: { pass: 0, fail: 1 },
    results: [{ result: 'fail', message: /old:1 has amd64/ }],
  });

  store.remove('/api/v1/namespaces/bank/pods/old');
  put('shop', 'gone', { nodeSelector: { 'kubernetes.io/arch': 'amd64' } });
  store.put(`${reports}/namespaces/shop/reports/of-others`, {});
  const before = changes(store).length;
  const second = await report('--publish', '-a', 'amd64');
  t.equal(second.code, 0, 'an unknown image is no failure');
  t.match(second.err, /Reports: 1 written, 1 deleted/);
  t.strictSame(changes(store).slice(before), [
    `PATCH ${published}`,
    `PATCH ${reportIn('shop')}`,
    `DELETE ${reportIn('bank')}`,
  ]);
  like(t, store.get(reportIn('shop')), {
    summary: { pass: 1, error: 1 },
    results: [{ result: 'error', message: /gone:1/ }, { result: 'pass' }],
  });
});

t.test('without OpenReports, or the permission to write them, only the ConfigMap is written', async (t) => {
  for (const [status, says] of [
    [404, /no Reports: the cluster has no OpenReports definitions/],
    [403, /no Reports: .*403/],
  ] as const) {
    const { store, report } = await cluster(t);
    store.fault(/ \/apis\/openreports/, { status });
    like(t, await report('--publish'), { code: 0, err: says });
    t.strictSame(changes(store), [`PATCH ${published}`]);
  }
});

t.test("others' Reports stay, and a refused Report does not stop the rest", async (t) => {
  const { store, report } = await cluster(t);
  store.put(reportIn('bank'), { metadata: { labels: { mine: 'yes' } }, summary: {} });
  store.fault(`PATCH ${reportIn('shop')}`, { status: 422, message: 'no such field', times: 1 });
  const stays =
    /Report bank\/archwright-report stays: it was not made by archwright\n.*no such field\n.*Reports: 0 written, 0 deleted/;
  like(t, await report('--publish'), { code: 1, err: stays });
  store.fault(`PATCH ${reportIn('shop')}`, {
    status: 403,
    message: 'unable to create new content in namespace shop because it is being terminated',
    times: 1,
  });
  t.equal((await report('--publish')).code, 0, 'a terminating namespace needs no Report');

  store.put(published, { metadata: { labels: { mine: 'yes' } } });
  const before = changes(store).length;
  const err = /ConfigMap archwright\/archwright-report was not made by archwright; delete it/;
  like(t, await report('--publish'), { code: 1, err });
  t.equal(changes(store).length, before);
});

t.test('wrong usage', async (t) => {
  const { store, report, fromOutside } = await cluster(t);
  for (const [args, err] of [
    [['-o', 'json'], /--publish and --output exclude each other/],
    [['--release', 'archwright/other'], /--release: there is no ConfigMap archwright\/other/],
    [['--release', 'other'], /--release must be NAMESPACE\/NAME/],
  ] as const)
    like(t, await report('--publish', ...args), { code: 2, err }, args.join(' '));
  store.remove(release);
  const err = /--publish: archwright was not found in the cluster; set --release/;
  like(t, await fromOutside('--publish'), { code: 2, err });
});

t.test('an incomplete report is not published', async (t) => {
  const { store, report, fromOutside } = await cluster(t);
  store.put('/api/v1/namespaces/shop/serviceaccounts/default', {});
  t.equal((await report('--publish')).code, 0);
  const before = store.get(published);
  // No controller responds.
  const refused = await fromOutside('--release', 'archwright/archwright', '--publish');
  like(t, refused, { code: 3, err: /not published, because it is incomplete; the last one stays/ });
  t.strictSame(store.get(published), before);
});

t.test('5,000 workloads fit; parts that do not fit are omitted and named', async (t) => {
  const pods = largeCluster(5000);
  const how = { architecture: 'arm64', lookups: '', made: new Date(0), namespaces: ['shop'] };
  const report = reportOf({ pods, ...how });
  const place = { namespace: 'archwright', name: 'archwright-report' } as const;
  const { object, leftOut } = await configMapOf(report, '<html>', place);
  t.strictSame(leftOut, []);
  t.ok(JSON.stringify(object).length < 400 * 1024);
  const large = await configMapOf(report, randomBytes(1_100_000).toString('latin1'), place);
  like(t, large.leftOut, [/^report\.html\.gz, 1\.\dMi: a ConfigMap may have 1Mi$/]);
  t.strictSame(Object.keys(large.object.binaryData), ['report.json.gz']);
  like(t, JSON.parse(large.object.data['summary.json']), { leftOut: large.leftOut, namespaces: ['shop'] });
});

t.test('a Report lists the worst results, and counts all in its summary', async (t) => {
  const why = '"'.repeat(2000);
  const pods = Array.from({ length: 1200 }, (_, index) =>
    judgedPod({
      name: `${String(index).padStart(4, '0')}${'n'.repeat(200)}`,
      ...(index % 3 > 0 && { blockers: [index % 3 === 1 ? { cause: 'image' } : { cause: 'selector' }] }),
      why,
    }),
  );
  const report = resultsOf(pods, 'arm64');
  like(t, report, {
    summary: { pass: 400, warn: 400, fail: 400, error: 0, skip: 0 },
    configuration: { limits: { maxResults: 500 } },
    results: Array.from({ length: 500 }, (_, index) => ({ result: index < 400 ? 'fail' : 'warn' })),
  });
  t.ok(JSON.stringify(report).length < 1024 * 1024, 'below the size limit of etcd');
});

t.test('at most 1,000 namespaces have a Report', async (t) => {
  const { store, client } = await connectedStore(t);
  const pods = Array.from({ length: 1001 }, (_, index) =>
    judgedPod({ name: 'web', namespace: `n${String(index).padStart(4, '0')}` }),
  );
  const printed: string[] = [];
  const say = (text: string): unknown => printed.push(text);
  const options = { client, name: 'archwright-report', say, stop: neverAborted };
  t.equal(await publishReports({ pods, architecture: 'arm64' }, options), true);
  t.strictSame(printed, ['left out: Reports of 1 namespace', 'Reports: 1000 written, 0 deleted']);
  t.equal(store.list(`${reports}/reports`).length, 1000);
});
