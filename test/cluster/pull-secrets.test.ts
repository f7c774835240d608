/** Secrets and service accounts are read once and cached, absent ones too; `test/webhook/pull-secrets.test.ts` has the rest. */
import { test } from 'tap';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const signal = new AbortController().signal;

function setUp(answer: (name: string) => Promise<Secret | undefined>) {
  const clock = createFakeClock();
  const reads: string[] = [];
  const secret = (namespace: string, name: string): Promise<Secret | undefined> => {
    reads.push(`${namespace}/${name}`);
    return answer(name);
  };
  const cluster = { secret, serviceAccountPullSecrets: () => Promise.resolve([]) };
  const pullSecrets = createPullSecrets({ cluster, keepMs: 60_000, clock, metrics: createMetrics() });
  const read = (name: string, namespace = 'a', asker = signal) =>
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
  t.strictSame(reads, ['a/x', 'a/x', 'b/x'], 'namespaces are apart');
  for (const name of ['absent', 'absent', 'failing', 'failing']) await read(name);
  t.strictSame(reads.slice(3), ['a/absent', 'a/failing', 'a/failing']);
});

test('a caller that stops waiting leaves the request to the next', async (t) => {
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

test('a thousand objects are kept, and the oldest leave first', async (t) => {
  const { reads, read } = setUp((name) => Promise.resolve({ metadata: { name } }));
  for (let index = 0; index <= 1000; index += 1) await read(`x${index}`);
  await read('x1000');
  t.equal(reads.length, 1001, 'the newest is there');
  await read('x0');
  t.equal(reads.length, 1002, 'the oldest is not');
});
