import t, { type Test } from 'tap';
import { watchTlsSecret } from '../../src/cluster/tls-secret.ts';
import { systemClock } from '../../src/async/clock.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { connect } from '../kube/support.ts';
import {
  createWorld,
  namespace,
  secretNames,
  settled,
  type World,
} from '../controller/features/certificates/world.ts';
import { captureLog } from '../support/captured.ts';
import { neverAborted } from '../support/never-aborted.ts';

const name = secretNames['controller-client'];

function watch(t: Test, world: World, use: 'client' | 'server' = 'client') {
  const { log, lines } = captureLog('debug');
  const client = connect(t, { access: world.store.access });
  const tls = watchTlsSecret({ client, namespace, name, clock: systemClock, log, use });
  t.teardown(() => tls.close());
  const keyOf = () => tls.current() && reveal(tls.current()?.key as never);
  return { tls, keyOf, lines };
}

t.test('it waits for a missing Secret, and requests no other one', async (t) => {
  const world = await createWorld(t);
  const { tls, keyOf, lines } = watch(t, world);
  await t.rejects(tls.ready(AbortSignal.abort()), { name: 'AbortError' });
  t.match(tls.problem(), /^Secret .*-controller-client-tls: it does not exist, or may not be read$/);
  t.equal(tls.current(), undefined);
  await world.leader()();
  await tls.ready(neverAborted);
  const texts = world.texts('controller-client') ?? {};
  const { cert, ca } = tls.current() ?? {};
  t.strictSame([cert, keyOf(), ca], [texts['tls.crt'], texts['tls.key'], texts['ca.crt']]);
  t.notMatch(lines.join(''), 'PRIVATE');
  const selectors = world.store.received(/secrets$/).map(({ query }) => query.get('fieldSelector'));
  t.strictSame(new Set(selectors), new Set([`metadata.name=${name}`]), 'no request for other Secrets');
});

t.test('each change is told once, and never a mixed pair', async (t) => {
  const world = await settled(t);
  const { tls, keyOf } = watch(t, world);
  await tls.ready(neverAborted);
  const pairs: string[] = [];
  const texts = () => world.texts('controller-client') ?? {};
  tls.onChange(() => pairs.push(`${tls.current()?.cert}${keyOf()}`));
  const expected: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    world.remove('controller-client');
    await world.leader()();
    expected.push(`${texts()['tls.crt']}${texts()['tls.key']}`);
    await world.store.until(() => pairs.length === count + 1, `change ${count}`);
  }
  world.put('controller-client', texts());
  t.strictSame(pairs, expected);
});

t.test('an invalid Secret does not replace the last good content', async (t) => {
  const world = await settled(t);
  const { tls, keyOf, lines } = watch(t, world);
  await tls.ready(neverAborted);
  const good = world.texts('controller-client') ?? {};
  const other = world.texts('agent') ?? {};
  const cases: [string, Record<string, string>, RegExp][] = [
    [
      'another key',
      { ...good, 'tls.key': other['tls.key'] ?? '' },
      /tls\.key of the Secret .* is not the key/,
    ],
    ['garbage', { ...good, 'tls.crt': 'garbage' }, /is not a certificate/],
    ['garbage in ca.crt', { ...good, 'ca.crt': 'garbage' }, /is not certificates/],
  ];
  for (const [what, texts, message] of cases) {
    lines.length = 0;
    world.put('controller-client', texts);
    await world.store.until(() => message.test(lines.join('')), what);
    t.strictSame([tls.current()?.cert, keyOf()], [good['tls.crt'], good['tls.key']], what);
    t.notMatch(lines.join(''), 'PRIVATE');
  }
  world.remove('controller-client');
  await world.leader()();
  const wanted = world.texts('controller-client')?.['tls.key'];
  await world.store.until(() => keyOf() === wanted, 'the next good content');
});

t.test('a client needs authorities, a server does not', async (t) => {
  const world = await settled(t);
  const { 'tls.crt': cert = '', 'tls.key': key = '' } = world.texts('controller-client') ?? {};
  world.put('controller-client', { 'tls.crt': cert, 'tls.key': key });
  const client = watch(t, world);
  const server = watch(t, world, 'server');
  await server.tls.ready(neverAborted);
  t.equal(server.tls.current()?.cert, cert);
  await world.store.until(() => client.lines.length > 0, 'a line about the client');
  t.equal(client.tls.current(), undefined);
  t.match(client.tls.problem(), /: it needs tls\.crt and tls\.key, and ca\.crt$/);
  t.match(client.lines.join(''), /a TLS certificate cannot be used; it must be written again/);
  t.notMatch(client.lines.join(''), 'PRIVATE');
});
