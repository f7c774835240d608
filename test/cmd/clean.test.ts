import t, { type Test } from 'tap';
import type { CleanReport } from '../../src/clean/run.ts';
import { run } from './run.ts';
import { storeWithConfig } from './world.ts';
import { like } from '../support/like.ts';

const leaseIn = (namespace: string): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/archwright-controller`;
const gate = { name: 'arch.example/scheduling-gate' };

async function cluster(t: Test) {
  const { store, config } = await storeWithConfig(t);
  const clean = (args: readonly string[], stop?: AbortSignal) =>
    run(['clean', '--kubeconfig', config, ...args], stop ? { stop } : {});
  return { store, clean };
}

t.test('a dry run reports the objects in the namespace of the Lease', async (t) => {
  const { store, clean } = await cluster(t);
  store.put(leaseIn('arch-system'), { spec: { holderIdentity: 'pod-a_1', leaseDurationSeconds: 15 } });
  store.put('/api/v1/namespaces/shop/pods/a', { spec: { containers: [], schedulingGates: [gate] } });
  store.put('/api/v1/namespaces/arch-system/secrets/archwright-ca', {
    metadata: { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } },
  });
  const { code, out, err } = await clean(['--dry-run']);
  t.equal(code, 0);
  t.match(err, /context test, namespace arch-system, dry run/);
  t.match(err, /would change pod shop\/a/);
  t.match(err, /would delete Secret arch-system\/archwright-ca/);
  t.match(out, /STEP +WOULD DO +FAILED\n/);
  t.match(out, /gates +1 +-\n/);
  t.strictSame(store.writes(), []);

  const json = await clean(['--dry-run', '-o', 'json', '--namespace', 'elsewhere']);
  const report = JSON.parse(json.out) as CleanReport;
  t.equal(report.dryRun, true);
  t.equal(report.steps.find(({ step }) => step === 'own objects')?.done, 0, 'only named objects count');
});

t.test('problems of settings that it does not use are only warnings', async (t) => {
  const { clean } = await cluster(t);
  const dir = t.testdir({ 'archwright.toml': 'later = 1\n' });
  const { code, err } = await clean(['--config', `${dir}/archwright.toml`, '--namespace', 'archwright']);
  t.equal(code, 0);
  t.match(err, /warning: ignored: \S*archwright\.toml:1: later is not a known setting/);
});

t.test('a release with other names is found by its label', async (t) => {
  const { store, clean } = await cluster(t);
  const release = (namespace: string, name: string) =>
    store.put(`/api/v1/namespaces/${namespace}/configmaps/${name}`, {
      metadata: { namespace, name, labels: { 'app.kubernetes.io/part-of': 'archwright' } },
      data: {
        'archwright.toml': `name = "${name}"\ntaintKey = "${name}.io/arch"\n`,
      },
    });
  release('platform', 'placer');
  store.put('/api/v1/namespaces/platform/secrets/placer-ca', {
    metadata: { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } },
  });
  const taints = [{ key: 'placer.io/arch', value: 'arm64', effect: 'NoSchedule' }];
  const metadata = { annotations: { 'arch.example/taint': 'placer.io/arch' } };
  store.put('/api/v1/nodes/a', { metadata, spec: { taints } });
  const dry = await clean(['--dry-run']);
  t.match(dry.err, /namespace platform, dry run/);
  for (const what of [/would delete Secret platform\/placer-ca/, /taint of node a/]) like(t, dry.err, what);
  release('elsewhere', 'other');
  const several = await clean(['--dry-run']);
  t.equal(several.code, 2);
  const message = /installed several times \(.*platform\/placer.*\): select one with --namespace/;
  like(t, several.err, message);
  const named = await clean(['--dry-run', '--namespace', 'platform']);
  t.match(named.err, /would delete Secret platform\/placer-ca/);
});

t.test('without a known namespace, it uses the one of the context; several are an error', async (t) => {
  const { store, clean } = await cluster(t);
  const nowhere = await clean(['--dry-run']);
  t.match(nowhere.err, /namespace shop, dry run/, 'the namespace of the context');
  for (const namespace of ['a', 'b']) store.put(leaseIn(namespace), { spec: {} });
  const several = await clean(['--dry-run']);
  t.equal(several.code, 2);
  t.match(several.err, /several namespaces \(a, b\): select one with --namespace/);
  t.equal((await clean(['--dry-run', '--namespace', 'a'])).code, 0);
  store.fault('GET /apis/coordination.k8s.io/v1/leases', { status: 403 });
  t.match((await clean(['--dry-run'])).err, /namespace shop, dry run/);
});

t.test('failed reads and removals are listed at the end', async (t) => {
  const { store, clean } = await cluster(t);
  store.fault('GET /api/v1/pods', { status: 403, message: 'no right to list pods' });
  const { code, out, err } = await clean(['--dry-run']);
  t.equal(code, 1);
  t.notMatch(err, /no right to list pods/, 'a failure is printed once');
  t.match(out, /gates +0 +1\n/);
  t.match(out, /Could not be removed:\ngates: .*no right to list pods\n/);
});

t.test('it fails if the cluster does not respond', async (t) => {
  const { store, clean } = await cluster(t);
  store.fault('GET /api/v1/configmaps', { status: 400, message: 'down' });
  like(t, await clean(['--dry-run']), { code: 3, err: /^archwright clean: .*down\n$/ });
});

t.test('it releases the Lease when it is stopped', async (t) => {
  const { store, clean } = await cluster(t);
  store.put(leaseIn('shop'), { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
  for (const name of ['a', 'b'])
    store.put(`/api/v1/namespaces/shop/pods/${name}`, { spec: { containers: [], schedulingGates: [gate] } });
  const stop = new AbortController();
  store.fault(/^PATCH .*pods\/a$/, { before: () => stop.abort('SIGTERM') });
  const { code, err } = await clean([], stop.signal);
  t.equal(code, 143);
  t.match(err, /stopped; run it again to continue/);
  like(t, store.get(leaseIn('shop')), { spec: { holderIdentity: '' } });
});
