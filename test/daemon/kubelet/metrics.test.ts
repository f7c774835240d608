import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bindPluginMetrics } from '../../../daemon/kubelet/run/plugin-error.ts';
import { defaultRunLimits } from '../../../daemon/kubelet/run/run.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { answering, configText, openNode, writePlugin } from './support.ts';
import { like } from '../../support/like.ts';

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

const providers = [{ name: 'p', defaultCacheDuration: '0' }];

t.test('a run that takes too long is counted', async (t) => {
  const metrics = createMetrics();
  const limits = { ...defaultRunLimits, timeoutMs: 100, drainMs: 50 };
  const { bin, found } = await openNode(t, providers, { p: '' }, { metrics, limits });
  writePlugin(join(bin, 'p'), 'exec sleep 60', '/bin/sh');
  await found('registry.example/a');
  like(t, await counts(metrics), { ok: 0, timeout: 1, timed: 1 });
});

t.test('runs are counted by outcome', async (t) => {
  const metrics = createMetrics();
  const { bin, config, found, source } = await openNode(t, providers, { p: answering({}) }, { metrics });
  const plugin = join(bin, 'p');
  t.strictSame(await counts(metrics), { ok: 0, failed: 0, timeout: 0, refused: 0, timed: 0, broken: 0 });
  await found('registry.example/a');
  like(t, await counts(metrics), { ok: 1, timed: 1 });
  writePlugin(plugin, 'exit 1', '/bin/sh');
  await found('registry.example/b');
  writePlugin(plugin, 'echo {}', '/bin/sh');
  await found('registry.example/c');
  like(t, await counts(metrics), { ok: 1, failed: 2, timed: 3 });
  chmodSync(plugin, 0o777);
  await found('registry.example/e');
  t.strictSame(await counts(metrics), { ok: 1, failed: 2, timeout: 0, refused: 1, timed: 3, broken: 0 });
  await source.refresh();
  like(t, await counts(metrics), { broken: 1 }, 'noticed by the next reading');
  rmSync(plugin);
  writeFileSync(config, configText({ name: 'p' }));
  await source.refresh();
  like(t, await counts(metrics), { broken: 1 });
});

t.test('runs that the agent’s shutdown stops are not counted', async (t) => {
  const metrics = createMetrics();
  bindPluginMetrics(metrics)('stopped', 5);
  like(t, await counts(metrics), { ok: 0, failed: 0, timeout: 0, refused: 0, timed: 0 });
  t.doesNotThrow(() => bindPluginMetrics(undefined)(undefined, 1), 'without metrics, nothing is counted');
});
