import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createDockerConfigSource } from '../../../src/credentials/docker/docker-config-file.ts';
import { createRegistryTomlSource } from '../../../src/credentials/sources/registry-toml.ts';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';
import { seriesOf } from '../../support/captured.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';

const isBroken = (metrics: Metrics, source: string) =>
  seriesOf(metrics, `archwright_source_broken{source="${source}"}`);

t.test('the gauge shows whether the current content can be used', async (t) => {
  const dir = t.testdir({ 'a.example.toml': 'user = "me"\nsecret = "hunter22"\n' });
  const metrics = createMetrics();
  const source = await createRegistryTomlSource({ dir, metrics, ...manualRefresh });
  t.teardown(() => source.close());
  t.equal(await isBroken(metrics, 'registry-toml'), 0);
  writeFileSync(join(dir, 'a.example.toml'), 'user = ');
  await source.refresh();
  t.equal(await isBroken(metrics, 'registry-toml'), 1);
  rmSync(join(dir, 'a.example.toml'));
  await source.refresh();
  t.equal(await isBroken(metrics, 'registry-toml'), 0, 'a removed source is not broken');
  t.equal(await isBroken(metrics, 'docker-config'), 0, 'the other series exist from the start');
});

t.test('missing candidates are not broken', async (t) => {
  const metrics = createMetrics();
  const dir = t.testdir();
  const candidates = [join(dir, 'config.json'), join(dir, '.dockercfg')];
  const source = await createDockerConfigSource({ candidates, metrics, ...manualRefresh });
  t.teardown(() => source.close());
  t.equal(await isBroken(metrics, 'docker-config'), 0);
  writeFileSync(candidates[0] ?? '', '{');
  await source.refresh();
  t.equal(await isBroken(metrics, 'docker-config'), 1);
});
