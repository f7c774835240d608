/** How pull secrets are read: cached, even absent ones, in a bounded memory, with suggestions for missing ones. */
import { test } from 'tap';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { seriesOf } from '../support/captured.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';
import { neverAborted } from '../support/never-aborted.ts';

function setUp(answer: (name: string) => Promise<Secret | undefined>) {
  const clock = createFakeClock();
  const metrics = createMetrics();
  const reads: string[] = [];
  const secret = (namespace: string, name: string): Promise<Secret | undefined> => {
    reads.push(`${namespace}/${name}`);
    return answer(name);
  };
  const cluster = { secret, serviceAccountPullSecrets: () => Promise.resolve([]) };
  const pullSecrets = createPullSecrets({ cluster, keepMs: 60_000, clock, metrics });
  const read = (name: string | readonly string[], namespace = 'a', asker = neverAborted) =>
    pullSecrets.source(namespace, { names: [name].flat() }, asker);
  const count = (outcome: string) =>
    seriesOf(metrics, `archwright_pull_secret_reads_total{outcome="${outcome}"}`);
  return { clock, reads, read, count, pullSecrets };
}

test('one request serves concurrent callers, absent objects are cached, failures are not', async (t) => {
  const { clock, reads, read, count, pullSecrets } = setUp(async (name) => {
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
  t.strictSame(await Promise.all(['found', 'missing', 'failed'].map(count)), [3, 1, 2]);
  reads.length = 0;
  await pullSecrets.source('a', { names: ['own'], serviceAccount: 'default' }, neverAborted);
  t.strictSame(reads, ['a/own'], 'a pod with Secrets does not get those of its account');
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
  const { reads, read, pullSecrets } = setUp(() => Promise.resolve({}));
  t.strictSame(
    [['x'], []].map((names) => pullSecrets.mayHave({ names })),
    [true, false],
  );
  for (const name of ['..', '.', '../x', 'a/b', 'A', ' ', 'a?b', 'x'.repeat(254)]) {
    like(t, (await read(name)).problems(), [{ message: 'there is no such Secret' }], name);
  }
  t.strictSame(reads, []);
});

test('a thousand objects are cached; of one pod, few are read', async (t) => {
  const { reads, read } = setUp((name) => Promise.resolve({ metadata: { name } }));
  for (let index = 0; index <= 1000; index += 1) await read(`x${index}`);
  for (const name of ['x1000', 'x0']) await read(name);
  t.equal(reads.length, 1002);
  await read(Array.from({ length: 1000 }, (_, index) => `y${index}`));
  t.equal(reads.length, 1022);
});

test('Secrets are cached without what no pod reads, and in a limited memory', async (t) => {
  for (const [type, kib, again] of [
    ['Opaque', 1024, 0],
    ['kubernetes.io/dockerconfigjson', 1024, 0],
    ['kubernetes.io/dockerconfigjson', 250, 68],
  ] as const) {
    const data = { '.dockerconfigjson': 'x'.repeat(kib * 1024) };
    const { reads, read } = setUp((name) => Promise.resolve({ metadata: { name }, type, data }));
    for (let index = 0; index < 2 * 68; index += 1) await read(`s${index % 68}`);
    t.equal(reads.length - 68, again, `${type}, ${kib} KiB`);
  }
});

test('few names are compared for a suggestion: the newest of the namespace, and no long ones', async (t) => {
  const { read } = setUp((name) =>
    Promise.resolve(name.startsWith('missing') ? undefined : { metadata: { name } }),
  );
  const problemsOf = async (...names: string[]) => (await read(names)).problems();
  const none = [{ message: /^there is no such Secret$/ }];
  await read('missin', 'bank');
  like(t, await problemsOf('missing'), none, 'a name of another namespace');
  const unread = Array.from({ length: 20 }, (_, index) => `${'z'.repeat(40)}${index}`);
  await problemsOf('mising', `missin${'g'.repeat(60)}`);
  await problemsOf(...unread.slice(1));
  like(t, await problemsOf('missing'), [{ message: /; did you mean mising\?$/ }]);
  await problemsOf(...unread);
  like(t, await problemsOf('missing'), none, 'twenty newer names');
  await problemsOf('missin');
  like(t, await problemsOf('missing'), [{ message: /; did you mean missin\?$/ }]);
  like(t, await problemsOf(`missing${'g'.repeat(60)}`), none);
  like(t, (await problemsOf('missing', 'missing1', 'missing2'))[0], { message: /did you mean/ });
  like(t, (await problemsOf('missing', 'missing1', 'missing2', 'missing3'))[0], none[0] ?? {});
});
