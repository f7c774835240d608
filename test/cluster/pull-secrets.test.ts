/**
 * Secrets and service accounts are cached, even absent ones. `test/webhook/pull-secrets.test.ts` has the
 * rest.
 */
import { test } from 'tap';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

function setUp(answer: (name: string) => Promise<Secret | undefined>) {
  const clock = createFakeClock();
  const reads: string[] = [];
  const secret = (namespace: string, name: string): Promise<Secret | undefined> => {
    reads.push(`${namespace}/${name}`);
    return answer(name);
  };
  const cluster = { secret, serviceAccountPullSecrets: () => Promise.resolve([]) };
  const pullSecrets = createPullSecrets({ cluster, keepMs: 60_000, clock, metrics: createMetrics() });
  const read = (name: string, namespace = 'a', asker = neverAborted) =>
    pullSecrets.source(namespace, { names: [name] }, asker);
  return { clock, reads, read };
}

test('one request serves concurrent callers, absent objects are cached, failures are not', async (t) => {
  const { clock, reads, read } = setUp(async (name) => {
    if (name === 'failing') throw new Error('away');
    return name === 'absent' ? undefined : { metadata: { name } };
  });
  await Promise.all([read('x'), read('x')]);
  await clock.advance(59_999);
  await read('x');
  t.strictSame(reads, ['a/x']);
  await clock.advance(1);
  await read('x');
  await read('x', 'b');
  t.strictSame(reads, ['a/x', 'a/x', 'b/x'], 'cached per namespace');
  for (const name of ['absent', 'absent', 'failing', 'failing']) await read(name);
  t.strictSame(reads.slice(3), ['a/absent', 'a/failing', 'a/failing']);
});

test('if a caller stops waiting, the next one still gets the result', async (t) => {
  const { promise, resolve } = Promise.withResolvers<Secret>();
  const { reads, read } = setUp(() => promise);
  const gone = new AbortController();
  const first = read('x', 'a', gone.signal);
  gone.abort(new Error('no time'));
  await t.rejects(first, { message: 'no time' });
  const second = read('x');
  resolve({ metadata: { name: 'x' } });
  await second;
  t.equal(reads.length, 1);
});

test('a namespace with slow reads keeps no other waiting, and few of them are in progress', async (t) => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const { reads, read } = setUp((name) => (name.startsWith('slow') ? promise : Promise.resolve({})));
  const slow = Array.from({ length: 100 }, (_, index) => read(`slow${index}`));
  await read('x', 'b');
  t.equal(reads.length, 6);
  t.equal(reads.at(-1), 'b/x');
  resolve(undefined);
  await Promise.all(slow);
  t.equal(reads.length, 101, 'each gets its turn');
});

test('a name that no Secret can have causes no request', async (t) => {
  const { reads, read } = setUp(() => Promise.resolve({}));
  for (const name of ['..', '.', '../x', 'a/b', 'A', ' ', 'a?b', 'x'.repeat(254)]) {
    like(t, (await read(name)).problems(), [{ message: 'there is no such Secret' }], name);
  }
  t.strictSame(reads, []);
});

test('a thousand objects are cached, and the oldest are dropped first', async (t) => {
  const { reads, read } = setUp((name) => Promise.resolve({ metadata: { name } }));
  for (let index = 0; index <= 1000; index += 1) await read(`x${index}`);
  await read('x1000');
  t.equal(reads.length, 1001, 'the newest is cached');
  await read('x0');
  t.equal(reads.length, 1002, 'the oldest is not cached');
});
