import t from 'tap';
import { PluginError } from '../../../../daemon/kubelet/run/plugin-error.ts';
import type { ProviderConfig } from '../../../../daemon/kubelet/config/provider-config.ts';
import {
  createProvider,
  type Execute,
  type ProviderOptions,
} from '../../../../daemon/kubelet/provider/provider.ts';
import type { ProviderResponse } from '../../../../daemon/kubelet/run/response.ts';
import { secret } from '../../../../src/telemetry/secret.ts';
import { execV1, stoppedClock } from '../support.ts';

const config: ProviderConfig = {
  name: 'p',
  matchImages: ['r.example', '%broken%'],
  defaultCacheDurationMs: 60_000,
  apiVersion: execV1,
};
const auth = new Map([['r.example', { username: 'u', password: secret('pass') }]]);

/** A provider whose plugin answers with this, and the images that it was asked for. */
function provider(response: Partial<ProviderResponse>, options: Partial<ProviderOptions> = {}) {
  const asked: string[] = [];
  const clock = stoppedClock();
  const execute: Execute = (request) => {
    asked.push(request.image);
    return Promise.resolve({ cacheKeyType: 'Image', auth, ...response });
  };
  return { clock, asked, made: createProvider({ config, execute, clock, ...options }) };
}

t.test('an answer is kept under its key type, for its own time or the default one', async (t) => {
  const images = ['r.example/a', 'r.example/a', 'r.example/b', 'r.example/b'];
  const cases: [Partial<ProviderResponse>, Partial<ProviderConfig>, number, string[]][] = [
    [{ cacheKeyType: 'Image' }, {}, 60_000, ['r.example/a', 'r.example/b']],
    [{ cacheKeyType: 'Registry' }, {}, 60_000, ['r.example/a']],
    [{ cacheKeyType: 'Global' }, {}, 60_000, ['r.example/a']],
    [{ cacheKeyType: 'Registry', cacheDurationMs: 5000 }, {}, 5000, ['r.example/a']],
    [
      { cacheKeyType: 'Registry', cacheDurationMs: 5000 },
      { defaultCacheDurationMs: 0 },
      5000,
      ['r.example/a'],
    ],
    [{ cacheKeyType: 'Registry', auth: new Map() }, {}, 60_000, ['r.example/a']],
    [{ cacheKeyType: 'Registry', cacheDurationMs: 0 }, {}, 0, images],
    [{ cacheKeyType: 'Registry', cacheDurationMs: -1 }, {}, 0, images],
    [{ cacheKeyType: 'Registry' }, { defaultCacheDurationMs: 0 }, 0, images],
  ];
  for (const [response, change, forMs, expected] of cases) {
    const { made, asked, clock } = provider(response, { config: { ...config, ...change } });
    for (const image of images) await made.provide(image);
    t.same(asked, expected, JSON.stringify([response, change]));
    if (forMs === 0) continue;
    clock.at = forMs;
    await made.provide('r.example/a');
    t.equal(asked.length, expected.length, 'until its end');
    clock.at += 1;
    await made.provide('r.example/a');
    t.equal(asked.length, expected.length + 1, 'and not longer');
  }
});

t.test('another type of key is no answer', async (t) => {
  for (const cacheKeyType of ['', 'image', 'Repository']) {
    const { made, asked } = provider({ cacheKeyType });
    t.match(await made.provide('r.example/a'), {
      auth: new Map(),
      reason: /did not return a valid cacheKeyType/,
    });
    t.equal(asked.length, 1);
    t.match(made.lastFailure(), { image: 'r.example/a', error: { code: 'bad-response' } });
  }
});

t.test('a plugin that is not for an image is not run', async (t) => {
  const { made, asked } = provider({});
  for (const image of ['s.example/a', 'r.example:443/a', 'x.r.example/a', '%broken%/a']) {
    t.equal(made.isFor(image), false);
    t.same((await made.provide(image)).auth, new Map());
  }
  t.same(asked, []);
});

t.test('a failure is paused for its image, told once, and made up for by a success', async (t) => {
  let works = false;
  let runs = 0;
  const failures: string[] = [];
  const { made, clock } = provider(
    {},
    {
      execute: () => {
        runs += 1;
        if (works) return Promise.resolve({ cacheKeyType: 'Image', auth });
        return Promise.reject(new PluginError('failed', 'p', 'exit status 1'));
      },
      onFailure: ({ image, error }) => failures.push(`${image} ${error.message}`),
    },
  );
  t.match(await made.provide('r.example/a'), { auth: new Map(), reason: 'exit status 1' });
  t.match(await made.provide('r.example/a'), { auth: new Map(), reason: 'exit status 1' });
  t.equal(runs, 1);
  await made.provide('r.example/b');
  t.equal(runs, 2, 'other images are asked for');
  t.same(failures, ['r.example/a exit status 1', 'r.example/b exit status 1']);
  works = true;
  clock.at = 10_000;
  t.equal((await made.provide('r.example/a')).auth.size, 1);
  t.match(made.lastFailure(), { image: 'r.example/b' });
  await made.provide('r.example/b');
  t.equal(made.lastFailure(), undefined);
});

t.test('a fault of ours is not taken for one of the plugin', async (t) => {
  const { made } = provider({}, { execute: () => Promise.reject(new TypeError('ours')) });
  await t.rejects(made.provide('r.example/a'), { message: 'ours' });
  t.equal(made.lastFailure(), undefined);
});

t.test('a caller that joins a run whose callers have left gets a run of its own', async (t) => {
  let runs = 0;
  const turn = Promise.withResolvers<void>();
  const { made } = provider(
    {},
    {
      execute: async (_, abandoned) => {
        runs += 1;
        await turn.promise;
        if (abandoned.aborted) throw new PluginError('stopped', 'p', 'nobody waits');
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
  const stopped = provider({}, { execute: () => Promise.reject(new PluginError('stopped', 'p', 'the end')) });
  t.match(await stopped.made.provide('r.example/a'), { reason: 'the end' });
  t.equal(stopped.made.lastFailure(), undefined);
});
