import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createDockerConfigSource } from '../../../src/credentials/docker/docker-config-file.ts';
import { createRegistryTomlSource } from '../../../src/credentials/sources/registry-toml.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';

/** Failed readings and whether it is broken now. */
async function counted(metrics: ReturnType<typeof createMetrics>, source: string) {
  const page = await metrics.render();
  const value = (name: string) => new RegExp(`^${name}\\{source="${source}"\\} (\\d+)$`, 'm').exec(page)?.[1];
  return [value('archwright_source_failed_readings_total'), value('archwright_source_broken')];
}

t.test('failed readings are counted, and the gauge shows the current state', async (t) => {
  const dir = t.testdir({ 'a.example.toml': 'user = "me"\nsecret = "hunter22"\n' });
  const metrics = createMetrics();
  const source = await createRegistryTomlSource({ dir, metrics, ...manualRefresh });
  t.teardown(() => source.close());
  t.strictSame(await counted(metrics, 'registry-toml'), ['0', '0']);
  writeFileSync(join(dir, 'a.example.toml'), 'user = ');
  await source.refresh();
  t.strictSame(await counted(metrics, 'registry-toml'), ['1', '1']);
  await source.refresh();
  t.strictSame(await counted(metrics, 'registry-toml'), ['2', '1']);
  rmSync(join(dir, 'a.example.toml'));
  await source.refresh();
  t.strictSame(await counted(metrics, 'registry-toml'), ['2', '0'], 'a removed source is not broken');
  t.strictSame(await counted(metrics, 'docker-config'), ['0', '0'], 'the other series exist from the start');
});

t.test('missing candidates are not counted', async (t) => {
  const metrics = createMetrics();
  const dir = t.testdir();
  const candidates = [join(dir, 'config.json'), join(dir, '.dockercfg')];
  const source = await createDockerConfigSource({ candidates, metrics, ...manualRefresh });
  t.teardown(() => source.close());
  t.strictSame(await counted(metrics, 'docker-config'), ['0', '0']);
  writeFileSync(candidates[0] ?? '', '{');
  await source.refresh();
  t.strictSame(await counted(metrics, 'docker-config'), ['1', '1']);
});
