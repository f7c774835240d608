/** What is told of plugins: their description, with the differences from the kubelet, and metrics. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { describeEnvironment } from '../../../daemon/kubelet/source.ts';
import { answering, openNode, openSource, tokenAttributes, writePlugin } from './support.ts';
import { like } from '../../support/like.ts';
import { bindPluginMetrics } from '../../../daemon/kubelet/run/plugin-error.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';

t.test('each plugin is described with its state', async (t) => {
  const { bin, config, source } = await openNode(
    t,
    [
      { name: 'z', matchImages: ['*.example', 'registry.test/team'] },
      { name: 'a' },
      { name: 'open' },
      { name: 'token', tokenAttributes },
    ],
    { z: answering({}), open: answering({}), token: answering({}) },
    { noTokens: 'the setting is off' },
  );
  chmodSync(join(bin, 'open'), 0o777);
  await source.refresh();
  const [whole, z, a, open, token, environment, ...more] = await source.describe();
  like(t, whole, {
    where: config,
    state: 'used',
    what: 'plugins: 4',
    differs: [/^the kubelet reads it only when it starts/],
  });
  t.strictSame(z, { where: 'plugin z', state: 'used', what: 'for *.example, registry.test/team' });
  like(t, a, { state: 'left-out', what: /did not exist/, differs: ['a kubelet does not start with this'] });
  like(t, open, { state: 'left-out', what: /can be written by others/, differs: ['the kubelet runs it'] });
  like(t, token, { where: 'plugin token', differs: [/with a token of the pod’s service account/] });
  t.equal(environment?.where, 'environment of plugins');
  t.strictSame(more, []);
});

t.test('a configuration that broke, and one that was never valid, are described', async (t) => {
  const { bin, config, source } = await openNode(t, [{ name: 'a' }], { a: answering({}) });
  writeFileSync(config, '{');
  await source.refresh();
  like(t, await source.describe(), [
    { where: config, state: 'left-out', what: /; the last good one stays in force$/ },
    { where: 'plugin a', state: 'used' },
    {},
  ]);
  rmSync(config);
  const { source: never } = await openSource(t, { config, binDir: bin });
  const [first, ...rest] = await never.describe();
  like(t, first, { state: 'left-out', differs: ['a kubelet does not start with this'] });
  t.notMatch(first?.what, /last good/);
  t.equal(rest.length, 1);
});

t.test('the environment of plugins is described', async (t) => {
  t.strictSame(describeEnvironment({ isRunning: true, service: undefined }), {
    where: 'environment of plugins',
    state: 'used',
    what: 'the variables of the running kubelet',
  });
  like(t, describeEnvironment({ isRunning: false, service: 'kubelet.service' }), {
    state: 'used',
    what: 'HOME, PATH, the variables of kubelet.service, and kubeletEnvironment',
  });
  like(t, describeEnvironment({ isRunning: false, service: undefined }), {
    state: 'absent',
    differs: [/kubeletEnvironment$/],
  });
});

async function counts(metrics: ReturnType<typeof createMetrics>) {
  const page = await metrics.render();
  const value = (pattern: string) => Number(new RegExp(`^${pattern} (\\d+)$`, 'm').exec(page)?.[1]);
  return {
    ...Object.fromEntries(
      ['ok', 'failed', 'timeout', 'refused'].map((outcome) => [
        outcome,
        value(`archwright_plugin_runs_total\\{outcome="${outcome}"\\}`),
      ]),
    ),
    timed: value('archwright_plugin_run_duration_seconds_count'),
    broken: value('archwright_source_broken\\{source="credential-provider"\\}'),
  };
}

t.test('runs are counted by outcome', async (t) => {
  const metrics = createMetrics();
  const providers = [{ name: 'p', defaultCacheDuration: '0' }];
  const { bin, found, source } = await openNode(t, providers, { p: answering({}) }, { metrics });
  const plugin = join(bin, 'p');
  t.strictSame(await counts(metrics), { ok: 0, failed: 0, timeout: 0, refused: 0, timed: 0, broken: 0 });
  await found('registry.example/a');
  like(t, await counts(metrics), { ok: 1, timed: 1 });
  writePlugin(plugin, 'exit 1', '/bin/sh');
  await found('registry.example/b');
  chmodSync(plugin, 0o777);
  await found('registry.example/e');
  t.strictSame(await counts(metrics), { ok: 1, failed: 1, timeout: 0, refused: 1, timed: 2, broken: 0 });
  await source.refresh();
  like(t, await counts(metrics), { broken: 1 }, 'noticed by the next reading');
});

t.test('each failure has its outcome, if it is one of the plugin', async (t) => {
  const metrics = createMetrics();
  const count = bindPluginMetrics(metrics);
  const codes = ['missing', 'not-started', 'timeout', 'too-much-output', 'bad-response'] as const;
  for (const code of [...codes, 'stopped', 'no-token'] as const) count(code, 5);
  like(t, await counts(metrics), { ok: 0, failed: 3, timeout: 1, refused: 1, timed: 5 });
  t.doesNotThrow(() => bindPluginMetrics(undefined)(undefined, 1), 'without metrics, nothing is counted');
});
