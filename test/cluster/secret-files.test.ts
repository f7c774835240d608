import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { keepSecretFiles } from '../../src/cluster/secret-files.ts';
import { connect } from '../kube/support.ts';
import { openTlsFiles } from '../../src/serving/tls-files.ts';
import { captureLog } from '../support/captured.ts';
import {
  createWorld,
  namespace,
  secretNames,
  settled,
  type World,
} from '../controller/features/certificates/world.ts';
import { neverAborted } from '../support/never-aborted.ts';

const secretName = secretNames['controller-client'];

function keep(t: Test, world: World, dir: string) {
  const { log, lines } = captureLog('debug');
  const client = connect(t, { access: world.store.access });
  const kept = keepSecretFiles({ client, namespace, secretName, kind: 'tls', dir, log });
  t.teardown(() => kept.close());
  return { kept, lines };
}

const read = (dir: string, name: string): string => readFileSync(join(dir, name), 'utf8');

t.test('files are written as by the kubelet, accessible only to their owner', async (t) => {
  const world = await settled(t);
  const dir = join(t.testdir(), 'deep', 'agent-tls');
  const { kept, lines } = keep(t, world, dir);
  await kept.ready(neverAborted);
  const texts = world.texts('controller-client') ?? {};
  for (const name of ['tls.crt', 'tls.key', 'ca.crt']) {
    t.equal(read(dir, name), texts[name], name);
    t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
  }
  t.equal(statSync(dir).mode & 0o777, 0o700);
  t.notMatch(lines.join(''), 'PRIVATE');
  const selectors = world.store.received(/secrets$/).map(({ query }) => query.get('fieldSelector'));
  t.strictSame(new Set(selectors), new Set([`metadata.name=${secretName}`]), 'no request for another Secret');
});

t.test('a reader never sees a partial change', async (t) => {
  const world = await settled(t);
  const dir = t.testdir();
  const { kept } = keep(t, world, dir);
  await kept.ready(neverAborted);
  const { log } = captureLog('warn');
  const files = await openTlsFiles({ dir, use: 'client', ca: true, log, pollMs: 20 });
  t.teardown(() => files.close());
  for (let count = 0; count < 5; count += 1) {
    world.remove('controller-client');
    await world.leader()();
    const wanted = world.texts('controller-client')?.['tls.crt'];
    await world.store.until(() => files.current().cert === wanted, `change ${count}`);
  }
  const versions = (): number => readdirSync(dir).filter((name) => /^\.\.[0-9a-f]{16}$/.test(name)).length;
  await world.store.until(() => versions() === 1, 'the removal of old versions');
});

t.test('an invalid Secret does not replace the last valid files', async (t) => {
  const world = await settled(t);
  const dir = t.testdir();
  const { kept, lines } = keep(t, world, dir);
  await kept.ready(neverAborted);
  const good = world.texts('controller-client') ?? {};
  const other = world.texts('agent') ?? {};
  const cases: [string, Record<string, string>, RegExp | undefined][] = [
    ['another key', { ...good, 'tls.key': other['tls.key'] ?? '' }, /is not the key of/],
    ['garbage', { ...good, 'tls.crt': 'garbage' }, /is not a certificate/],
    ['garbage in ca.crt', { ...good, 'ca.crt': 'garbage' }, /is not certificates/],
    ['without a key', { 'tls.crt': good['tls.crt'] ?? '', 'ca.crt': good['ca.crt'] ?? '' }, undefined],
  ];
  for (const [what, texts, message] of cases) {
    lines.length = 0;
    world.put('controller-client', texts);
    if (message) await world.store.until(() => message.test(lines.join('')), what);
    t.equal(read(dir, 'tls.crt'), good['tls.crt'], what);
    t.equal(read(dir, 'tls.key'), good['tls.key'], what);
    t.notMatch(lines.join(''), 'PRIVATE');
  }
  world.remove('controller-client');
  await world.leader()();
  const wanted = world.texts('controller-client')?.['tls.key'];
  await world.store.until(() => read(dir, 'tls.key') === wanted, 'the next valid files');
});

t.test('leftovers of an earlier process are replaced, current files are not written again', async (t) => {
  const world = await settled(t);
  const dir = t.testdir();
  mkdirSync(join(dir, '..00112233445566ff'));
  writeFileSync(join(dir, '..00112233445566ff', 'tls.key'), 'old');
  symlinkSync('..gone', join(dir, '..data'));
  symlinkSync('..gone', join(dir, '..data.new'));
  writeFileSync(join(dir, 'tls.crt'), 'a plain file');
  const { kept } = keep(t, world, dir);
  await kept.ready(neverAborted);
  t.equal(read(dir, 'tls.crt'), world.texts('controller-client')?.['tls.crt']);
  t.notOk(existsSync(join(dir, '..00112233445566ff')));

  // The next process finds current files, and does not write them.
  await kept.close();
  const before = statSync(join(dir, 'tls.crt')).ino;
  const next = keep(t, world, dir);
  await next.kept.ready(neverAborted);
  t.equal(statSync(join(dir, 'tls.crt')).ino, before);
});

t.test('it waits for a missing Secret, and reports an unwritable directory', async (t) => {
  const world = await createWorld(t);
  const dir = t.testdir();
  const { kept } = keep(t, world, join(dir, 'tls'));
  const gone = new Error('enough waiting');
  await t.rejects(kept.ready(AbortSignal.abort(gone)), gone);
  await world.leader()();
  await kept.ready(neverAborted);

  writeFileSync(join(dir, 'file'), '');
  const bad = keep(t, world, join(dir, 'file', 'tls'));
  await world.store.until(() => bad.lines.join('').includes('cannot be written'), 'the log line');
  await t.rejects(bad.kept.ready(AbortSignal.abort(gone)), gone);
});
