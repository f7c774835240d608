import t from 'tap';
import { PluginError } from '../../../../daemon/kubelet/run/plugin-error.ts';
import type { ProviderConfig } from '../../../../daemon/kubelet/config/provider-config.ts';
import {
  cacheKey,
  CredentialCache,
  Provider,
  type ProviderOptions,
} from '../../../../daemon/kubelet/provider/provider.ts';
import type { Auth } from '../../../../daemon/kubelet/provider/service-account.ts';
import type { Execute, ProviderResponse } from '../../../../daemon/kubelet/run/execute.ts';
import { secret } from '../../../../src/telemetry/secret.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { execV1 } from '../support.ts';
import { like } from '../../../support/like.ts';

const config: ProviderConfig = {
  name: 'p',
  matchImages: ['r.example', '%broken%'],
  defaultCacheDuration: 60_000,
  apiVersion: execV1,
};
const auth = new Map([['r.example', { username: 'u', password: secret('pass') }]]);

/** A provider with this response of its plugin, and the images of its requests. */
function provider(response: Partial<ProviderResponse>, options: Partial<ProviderOptions> = {}) {
  const requested: string[] = [];
  const clock = createFakeClock();
  const execute: Execute = (request) => {
    requested.push(request.image);
    return Promise.resolve({ cacheKeyType: 'Image', auth, ...response });
  };
  return { clock, requested, made: new Provider({ config, execute, clock, ...options }) };
}

t.test('a response is cached by its cacheKeyType, for its own or the default duration', async (t) => {
  const images = ['r.example/a', 'r.example/a', 'r.example/b', 'r.example/b'];
  const cases: [Partial<ProviderResponse>, defaultCacheDuration: number, number, string[]][] = [
    [{ cacheKeyType: 'Image' }, 60_000, 60_000, ['r.example/a', 'r.example/b']],
    [{}, 60_000, 60_000, ['r.example/a']],
    [{ cacheKeyType: 'Global' }, 60_000, 60_000, ['r.example/a']],
    [{ cacheDurationMs: 5000 }, 60_000, 5000, ['r.example/a']],
    [{ cacheDurationMs: 5000 }, 0, 5000, ['r.example/a']],
    [{ auth: new Map() }, 60_000, 60_000, ['r.example/a']],
    [{ cacheDurationMs: 0 }, 60_000, 0, images],
    [{ cacheDurationMs: -1 }, 60_000, 0, images],
    [{}, 0, 0, images],
  ];
  for (const [change, defaultCacheDuration, forMs, expected] of cases) {
    const response = { cacheKeyType: 'Registry', ...change };
    const { made, requested, clock } = provider(response, { config: { ...config, defaultCacheDuration } });
    for (const image of images) await made.provide(image);
    t.strictSame(requested, expected, JSON.stringify([change, defaultCacheDuration]));
    if (forMs === 0) continue;
    await clock.advance(forMs);
    await made.provide('r.example/a');
    t.equal(requested.length, expected.length, 'cached until its end');
    await clock.advance(1);
    await made.provide('r.example/a');
    t.equal(requested.length, expected.length + 1, 'expired after its end');
  }
});

t.test('an unknown cacheKeyType is an error', async (t) => {
  for (const cacheKeyType of ['', 'image', 'Repository']) {
    const { made, requested } = provider({ cacheKeyType });
    const reason = /did not return a valid cacheKeyType/;
    like(t, await made.provide('r.example/a'), { auth: new Map(), reason });
    t.equal(requested.length, 1);
    like(t, made.lastFailure(), { image: 'r.example/a', error: { code: 'bad-response' } });
  }
});

t.test('a login without user name or password is a problem until the next good one', async (t) => {
  for (const [username, password] of [
    ['', ''],
    ['u', ''],
    ['', 'pass'],
  ] as const) {
    const logins = [new Map([['r.example', { username, password: secret(password) }]]), auth];
    const execute: Execute = () =>
      Promise.resolve({ cacheKeyType: 'Image', auth: logins.shift() ?? auth, cacheDurationMs: 0 });
    const { made } = provider({}, { execute });
    t.equal((await made.provide('r.example/a')).auth.size, 1, 'as the kubelet would use it');
    like(t, made.lastFailure(), { image: 'r.example/a', error: { message: /agent.readKubeletEnvironment/ } });
    await made.provide('r.example/a');
    t.equal(made.lastFailure(), undefined);
  }
});

t.test('a plugin runs only for matching images', async (t) => {
  const { made, requested } = provider({});
  for (const image of ['s.example/a', 'r.example:443/a', 'x.r.example/a', '%broken%/a']) {
    t.equal(made.matches(image), false);
    t.strictSame((await made.provide(image)).auth, new Map());
  }
  t.strictSame(requested, []);
});

t.test('a failure backs off its image, is reported once, and is cleared by a success', async (t) => {
  let works = false;
  let runs = 0;
  const failures: string[] = [];
  const { made, clock } = provider(
    {},
    {
      execute: () => {
        runs += 1;
        if (works) return Promise.resolve({ cacheKeyType: 'Image', auth });
        return Promise.reject(new PluginError('failed', 'exit status 1'));
      },
      onFailure: ({ image, error }) => failures.push(`${image} ${error.message}`),
    },
  );
  like(t, await made.provide('r.example/a'), { auth: new Map(), reason: 'exit status 1' });
  like(t, await made.provide('r.example/a'), { auth: new Map(), reason: 'exit status 1' });
  t.equal(runs, 1);
  await made.provide('r.example/b');
  t.equal(runs, 2, 'other images are not backed off');
  t.strictSame(failures, ['r.example/a exit status 1', 'r.example/b exit status 1']);
  works = true;
  await clock.advance(10_000);
  t.equal((await made.provide('r.example/a')).auth.size, 1);
  like(t, made.lastFailure(), { image: 'r.example/b' });
  await made.provide('r.example/b');
  t.equal(made.lastFailure(), undefined);
});

t.test('an unexpected exception is not a failure of the plugin', async (t) => {
  const { made } = provider({}, { execute: () => Promise.reject(new TypeError('ours')) });
  await t.rejects(made.provide('r.example/a'), { message: 'ours' });
  t.equal(made.lastFailure(), undefined);
});

t.test('a caller that joined an aborted run starts another', async (t) => {
  let runs = 0;
  const turn = Promise.withResolvers<void>();
  const { made } = provider(
    {},
    {
      execute: async (_, abandoned) => {
        runs += 1;
        await turn.promise;
        if (abandoned.aborted) throw new PluginError('stopped', 'no caller waits');
        return { cacheKeyType: 'Image', auth };
      },
    },
  );
  const gone = new AbortController();
  const left = made.provide('r.example/a', undefined, gone.signal);
  gone.abort(new Error('left'));
  await t.rejects(left, { message: 'left' });
  const joined = made.provide('r.example/a');
  turn.resolve();
  t.equal((await joined).auth.size, 1);
  t.equal(runs, 2);
  const stopped = provider({}, { execute: () => Promise.reject(new PluginError('stopped', 'the end')) });
  like(t, await stopped.made.provide('r.example/a'), { reason: 'the end' });
  t.equal(stopped.made.lastFailure(), undefined);
});

t.test('the back-off doubles from 10 s, or a minute after a timeout, up to 5 minutes', async (t) => {
  for (const [code, expected] of [
    ['failed', [10, 20, 40, 80, 160, 300, 300]],
    ['timeout', [60, 120, 240, 300, 300]],
  ] as const) {
    let runs = 0;
    const execute: Execute = () => {
      runs += 1;
      return Promise.reject(new PluginError(code, 'no'));
    };
    const { made, clock } = provider({}, { execute });
    await made.provide('r.example/a');
    for (const [index, seconds] of expected.entries()) {
      await clock.advance(seconds * 1000 - 1);
      like(t, await made.provide('r.example/a'), { reason: 'no' });
      t.equal(runs, index + 1);
      await clock.advance(1);
      await made.provide('r.example/a');
      t.equal(runs, index + 2, `${code} ${seconds} s`);
    }
  }
});

t.test('the number of remembered failures is limited', async (t) => {
  const requested: string[] = [];
  const execute: Execute = ({ image }) => {
    requested.push(image);
    return Promise.reject(new PluginError('failed', 'no'));
  };
  const { made } = provider({}, { execute });
  for (let index = 0; index <= 1000; index += 1) await made.provide(`r.example/${index}`);
  for (const index of [1, 0]) await made.provide(`r.example/${index}`);
  t.strictSame(requested.slice(1001), ['r.example/0']);
});

const authOf = (username = 'u', password = 'p'): Auth =>
  new Map([['k', { username, password: secret(password) }]]);
const user = (found: Auth | undefined): string | undefined => found?.get('k')?.username;

t.test('limits on number and size delete the oldest entries first', async (t) => {
  const few = new CredentialCache(createFakeClock());
  for (let index = 0; index < 1000; index += 1) few.set(cacheKey(`${index}`), authOf(`${index}`), 1000);
  few.set(cacheKey('0'), authOf('again'), 1000);
  few.set(cacheKey('1000'), authOf('1000'), 1000);
  t.strictSame(
    ['0', '1', '2', '1000'].map((name) => user(few.get(name))),
    ['again', undefined, '2', '1000'],
  );
  const mebibyte = 'x'.repeat(1_048_576);
  const small = new CredentialCache(createFakeClock());
  for (const name of ['a', 'b', 'c', 'd']) small.set(cacheKey(name), authOf(name, mebibyte), 1000);
  t.strictSame(
    ['a', 'b', 'd'].map((name) => user(small.get(name))),
    [undefined, 'b', 'd'],
    'keys and names count too',
  );
  small.set(cacheKey('large'), authOf('u', mebibyte.repeat(4)), 1000);
  t.equal(small.get('large'), undefined, 'an entry larger than the limit is not cached');
});
