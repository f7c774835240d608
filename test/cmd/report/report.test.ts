import t, { type Test } from 'tap';
import { formatDrifted, keyOfDrifted } from '../../../src/images/sources/drifted-tags.ts';
import { multiArch } from '../../support/registry/content.ts';
import { archIn, archLabel, isIn, onArch, requiring, termOf } from '../../support/placement-input.ts';
import { putOwned, putPod, shop, startCluster, uidOf } from './cluster.ts';
import { like } from '../../support/like.ts';

type Row = Readonly<Record<string, string | number | readonly string[] | undefined>>;

interface Document {
  readonly architecture: string;
  readonly totals: Readonly<Record<string, { pods: number; workloads: number; there: number; cpu: number }>>;
  readonly workloads: readonly Row[];
  readonly images: readonly Row[];
}

async function cluster(t: Test) {
  const open = await shop(t);
  const { store, report: run } = await startCluster(t);
  const report = async (...args: readonly string[]) => {
    const result = await run('-o', 'json', ...args);
    return { ...result, document: JSON.parse(result.out || '{}') as Document };
  };
  return { open, both: `${open.host}/both:1`, old: `${open.host}/old:1`, store, report };
}

const rowsOf = ({ workloads }: Document): string[] =>
  workloads.map(({ namespace, kind, name, pods, verdict }) =>
    [namespace, `${String(kind)}/${String(name)}`, pods, verdict].join(' '),
  );

t.test('the report has workloads that could move, and blockers of the rest', async (t) => {
  const { open, both, old, store, report } = await cluster(t);
  putOwned(store, '/apis/apps/v1/namespaces/shop/replicasets/web-7c', 'ReplicaSet', ['Deployment', 'web']);
  putOwned(store, '/apis/apps/v1/namespaces/shop/replicasets/web-9d', 'ReplicaSet', ['Deployment', 'web']);
  putOwned(store, '/apis/batch/v1/namespaces/shop/jobs/night-1', 'Job', ['CronJob', 'night']);
  const web = ['apps/v1', 'ReplicaSet', 'web-7c'] as const;
  putPod(store, 'shop/web-1', [both], { owner: web });
  putPod(store, 'shop/web-2', [both], { owner: web, node: 'g1' });
  putPod(store, 'shop/web-3', [both], { owner: ['apps/v1', 'ReplicaSet', 'web-9d'], node: '' });
  putPod(store, 'shop/night-1', [both, old], { owner: ['batch/v1', 'Job', 'night-1'] });
  putPod(store, 'shop/db-0', [both], { owner: ['apps/v1', 'StatefulSet', 'gone'], spec: onArch('amd64') });
  putPod(store, 'bank/alone', [`${open.host}/missing:1`], { node: 'elsewhere' });
  putPod(store, 'shop/ended', [old], { phase: 'Succeeded' });
  putPod(store, 'shop/failed', [old], { phase: 'Failed' });
  putPod(store, 'shop/mirror', [old], { annotations: { 'kubernetes.io/config.mirror': 'x' } });

  const { document, code, err } = await report();
  t.equal(err, '');
  t.equal(code, 1, 'one image is unknown');
  t.equal(document.architecture, 'arm64');
  t.strictSame(rowsOf(document), [
    'shop Deployment/web 3 yes',
    'shop StatefulSet/gone 1 pinned',
    'shop CronJob/night 1 no',
    'bank Pod/alone 1 unknown',
  ]);
  const [could, pinned, lacking, unknown] = document.workloads;
  like(t, could, { on: { amd64: 1, arm64: 1 }, cpu: 1.5, memory: 3 * 2 ** 30, why: '' });
  like(t, pinned, { why: 'the pod requires amd64' });
  like(t, lacking, { why: `${old} has amd64`, cpu: 1 });
  like(t, unknown, { why: /missing:1: not-found: /, on: {} });
  const totals = Object.entries(document.totals).map(([name, total]) => {
    const { workloads, pods, there, cpu } = total;
    return [name, workloads, pods, there, cpu];
  });
  t.strictSame(totals, [
    ['yes', 1, 3, 1, 1.5],
    ['pinned', 1, 1, 0, 0.5],
    ['no', 1, 1, 0, 1],
    ['unknown', 1, 1, 0, 0.5],
    ['all', 4, 6, 1, 3.5],
  ]);
  const columns = ['image', 'verdict', 'namespaces', 'workloads', 'pods', 'cpu'];
  const images = document.images.map((each) => columns.map((column) => each[column]));
  t.strictSame(images, [
    [both, 'yes', 1, 3, 5, 2.5],
    [old, 'no', 1, 1, 1, 0.5],
    [`${open.host}/missing:1`, 'unknown', 1, 1, 1, 0.5],
  ]);
  t.strictSame(document.images[1]?.['architectures'], ['amd64']);
  t.strictSame(store.writes(), [], 'no write');

  like(t, await report('-n', 'shpo'), { code: 0, err: /warning: there are no pods in shpo\n/ });
  const other = await report('-a', 'amd64', '-n', 'shop', '--namespace', 'shop');
  t.equal(other.code, 0);
  t.strictSame(rowsOf(other.document), [
    'shop Deployment/web 3 yes',
    'shop CronJob/night 1 yes',
    'shop StatefulSet/gone 1 yes',
  ]);
  t.equal(other.document.totals['all']?.there, 3);
});

t.test('each image is looked up once, whatever the pull policies', async (t) => {
  const { open, both, old, store, report } = await cluster(t);
  const put = (name: string, image: string, imagePullPolicy: string, more: object = {}): void =>
    putPod(store, name, [], { spec: { containers: [{ name: 'c', image, imagePullPolicy }], ...more } });
  for (let i = 0; i < 30; i++) {
    const serviceAccountName = `account-${i % 5}`;
    put(`shop/p${i}`, old, i % 2 ? 'Always' : 'IfNotPresent', { serviceAccountName });
  }
  put('shop/never', both, 'Never');
  const { document, code } = await report();
  t.equal(code, 1);
  t.equal(document.totals['no']?.pods, 30);
  like(t, document.workloads.at(-1), { name: 'never', verdict: 'unknown', why: /never pulled/ });
  const manifests = open.requests.filter(({ path }) => path.includes('/manifests/'));
  t.equal(manifests.length, 1);
});

t.test("archwright's additions are no constraint of the pod; a DaemonSet's template counts", async (t) => {
  const { both, store, report } = await cluster(t);
  const requiresAmd64 = requiring(termOf(archIn('amd64')));
  const onNode = requiring({ matchFields: [isIn('metadata.name', 'a1')] });
  const put = (name: string, spec: object, record?: object): void => {
    const decision = JSON.stringify({ v: 1, architectures: ['amd64'], imagesKey: 'x', ...record });
    const annotations = record && { annotations: { 'arch.example/decision': decision } };
    putPod(store, `shop/${name}`, [both], { spec, ...annotations });
  };
  const added = (...values: string[]) => ({ added: { terms: [[[archLabel, values]]], made: true } });
  put('own', requiresAmd64);
  put('ours', requiresAmd64, added('amd64'));
  const widened = { architectures: undefined, widened: onArch('amd64'), ...added('amd64', 'arm64') };
  put('widened', requiring(termOf(archIn('amd64', 'arm64'))), widened);
  put('node', onNode);
  const daemons: [name: string, template: object | undefined][] = [
    ['free', { spec: { containers: [] } }],
    ['choosing', { spec: { containers: [], ...requiresAmd64 } }],
    ['unread', undefined],
  ];
  for (const [name, template] of daemons) {
    const metadata = { uid: uidOf('DaemonSet', name) };
    if (template)
      store.put(`/apis/apps/v1/namespaces/shop/daemonsets/${name}`, { metadata, spec: { template } });
    putPod(store, `shop/${name}-1`, [both], { owner: ['apps/v1', 'DaemonSet', name], spec: onNode });
  }
  const { document } = await report();
  t.strictSame(rowsOf(document), [
    'shop DaemonSet/free 1 yes',
    'shop Pod/node 1 yes',
    'shop Pod/ours 1 yes',
    'shop DaemonSet/unread 1 yes',
    'shop Pod/widened 1 yes',
    'shop DaemonSet/choosing 1 pinned',
    'shop Pod/own 1 pinned',
  ]);
});

t.test('an image noted as broken lacks the architecture, or has a CPU level', async (t) => {
  const { digest } = multiArch(['linux/amd64', 'linux/arm64']);
  const { both, store, report } = await cluster(t);
  putPod(store, 'shop/app', [both]);
  const judgedWith = async (note: string, architecture: string) => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const value = JSON.stringify({ image: 'both:1', namespaces: ['shop'], until });
    store.put('/api/v1/namespaces/archwright/configmaps/archwright-broken-images', {
      data: { [`${digest.replace(':', '-')}.${note}`]: value },
    });
    return (await report('--architecture', architecture)).document.workloads;
  };
  like(t, await judgedWith('arm64', 'arm64'), [{ verdict: 'no', why: /has amd64; .*exec format error/ }]);
  like(t, await judgedWith('amd64-v3', 'amd64'), [
    { verdict: 'yes', why: /both:1: needs x86-64-v3; not on every amd64 node/ },
  ]);
  like(t, await judgedWith('amd64-v3', 'arm64'), [{ verdict: 'yes', why: '' }]);
});

t.test('an image is judged for the operating system of the pod', async (t) => {
  const { open, store, report } = await cluster(t);
  open.push('mixed', '1', multiArch(['linux/arm64', 'windows/amd64']));
  const mixed = [`${open.host}/mixed:1`];
  putPod(store, 'shop/linux', mixed);
  putPod(store, 'shop/windows', mixed, { spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } });
  const { document } = await report();
  t.strictSame(rowsOf(document), ['shop Pod/linux 1 yes', 'shop Pod/windows 1 no']);
  like(t, document.images, [{ verdict: 'no', pods: 2 }], 'the worse result counts');
});

t.test('a tag that now has the architecture is mentioned', async (t) => {
  const { both: image, store, report } = await cluster(t);
  const digest = `sha256:${'a'.repeat(64)}`;
  const drifted = { image, digest, lost: [], gained: ['linux/arm64'], since: 0 };
  const data = { [keyOfDrifted(image)]: formatDrifted(drifted) };
  store.put('/api/v1/namespaces/archwright/configmaps/archwright-drift', { data });
  putPod(store, 'shop/db-0', [image]);
  const why = async (...args: string[]) => (await report(...args)).document.workloads.map(({ why }) => why);
  t.strictSame(await why(), [`${image}: now has arm64`]);
  t.strictSame(await why('-a', 'amd64'), ['']);
  store.fault(/configmaps/, { status: 403 });
  t.strictSame(await why(), [''], 'without the permission to read the notes');
});

t.test('it warns if it may not read nodes, and fails if it may not read pods', async (t) => {
  const { both, store, report } = await cluster(t);
  putPod(store, 'shop/web', [both]);
  const mend = store.fault('GET /api/v1/nodes', { status: 403 });
  const without = await report();
  t.match(without.err, /no permission to read nodes/);
  like(t, without.document.workloads, [{ name: 'web', on: {}, verdict: 'yes' }]);
  mend();
  const allow = store.fault('GET /api/v1/pods', { status: 403 });
  const refused = await report();
  t.equal(refused.code, 3);
  t.equal(refused.out, '');
  const message = /^archwright report: .*403.*; use --namespace to select namespaces that you may read\n$/;
  like(t, refused.err, message);
  allow();
  store.fault('GET /api/v1/pods', { status: 400 });
  t.notMatch((await report()).err, /--namespace/, 'only a missing right has the hint');
});

t.test('many owners are listed at once, or read one by one if listing is forbidden', async (t) => {
  const { both, store, report } = await cluster(t);
  const pods = 150;
  for (let index = 0; index < pods; index += 1) {
    const name = `web-${index}`;
    const path = `/apis/apps/v1/namespaces/shop/replicasets/${name}-7c`;
    putOwned(store, path, 'ReplicaSet', ['Deployment', name]);
    putPod(store, `shop/${name}`, [both], { owner: ['apps/v1', 'ReplicaSet', `${name}-7c`] });
  }
  putPod(store, 'shop/gone', [both], { owner: ['apps/v1', 'ReplicaSet', 'gone-7c'] });
  const reads = async (...args: string[]): Promise<readonly string[]> => {
    const earlier = store.requests.length;
    const { document, err, code } = await report(...args);
    t.strictSame([code, err], [0, '']);
    t.equal(document.workloads.filter(({ kind }) => kind === 'Deployment').length, pods);
    const orphans = document.workloads.filter(({ name }) => name === 'gone-7c');
    t.equal(orphans.length, 1, 'listed itself, because it is gone');
    const requests = store.requests.slice(earlier).filter(({ path }) => path.includes('replicasets'));
    for (const { path, accept } of requests)
      if (path.endsWith('replicasets')) t.match(accept, /;as=PartialObjectMetadataList;/);
    return requests.map(({ path }) => path);
  };
  const gone = '/apis/apps/v1/namespaces/shop/replicasets/gone-7c';
  t.strictSame(await reads(), ['/apis/apps/v1/replicasets', gone]);
  t.strictSame(await reads('-n', 'shop'), ['/apis/apps/v1/namespaces/shop/replicasets', gone]);
  store.fault('GET /apis/apps/v1/replicasets', { status: 403 });
  t.equal((await reads()).length, 1 + pods + 1);
});
