/** Descriptions of the sources in files, and the gauge of their problems. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createDockerConfigSource } from '../../src/credentials/docker/docker-config-file.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { createRegistryTomlSource } from '../../src/credentials/sources/registry-toml.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { seriesOf } from '../support/captured.ts';
import { manualRefresh } from '../support/manual-refresh.ts';
import { like } from '../support/like.ts';

const good = 'user = "me"\nsecret = "hunter22"\n';

/** `state what` by file name, and the differences from the node. */
async function describedParts(t: Test, source: LiveCredentialSource, dir: string) {
  t.teardown(() => source.close());
  const parts = await source.describe();
  t.notMatch(JSON.stringify(parts), /hunter22|aHVudGVy/, 'no secret');
  return parts.map(({ where, state, what, differs = [] }) =>
    [where.replace(dir, ''), state, what.replaceAll(dir, ''), ...differs].join(' | '),
  );
}

t.test('each registry TOML file is described', async (t) => {
  const dir = t.testdir({
    'a.example.toml': good,
    'b.example_5000_.toml': good,
    'c.toml': 'user = "hunter22',
  });
  const source = await createRegistryTomlSource({ dir, ...manualRefresh });
  const node =
    'the kubelet does not have these credentials: the node pulls such an image only with a pull secret or with credentials of its own';
  t.strictSame(await describedParts(t, source, dir), [
    ` | used | files: 3 | ${node}`,
    '/a.example.toml | used | a credential for a.example',
    '/b.example_5000_.toml | used | a credential for b.example:5000',
    '/c.toml | left-out | is not valid TOML (line 1)',
  ]);
  writeFileSync(join(dir, 'a.example.toml'), '');
  await source.refresh();
  like(t, (await source.describe())[1], {
    state: 'left-out',
    what: 'user must be a string, as in user = "NAME"; its last good content stays in force',
  });
});

t.test('an empty and a missing directory are described', async (t) => {
  const dir = t.testdir({ 'readme.txt': '' });
  const empty = await createRegistryTomlSource({ dir, ...manualRefresh });
  t.strictSame(await describedParts(t, empty, dir), [' | unused | holds no file <registry>.toml']);
  const missing = await createRegistryTomlSource({ dir: join(dir, 'creds'), ...manualRefresh });
  t.strictSame(await describedParts(t, missing, dir), ['/creds | left-out | there is no such directory']);
  const escaping = await createRegistryTomlSource({ dir: '/../creds', root: dir, ...manualRefresh });
  like(t, await describedParts(t, escaping, dir), [
    /^\/\.\.\/creds \| left-out \| \/\.\.\/creds: leads out of/,
  ]);
});

t.test('the docker config in use is described, and those before and after it', async (t) => {
  const auths = { auths: { 'a.example': { auth: Buffer.from('me:hunter22').toString('base64') }, ':x': {} } };
  const dir = t.testdir({ b: { 'config.json': '{' }, c: { 'config.json': JSON.stringify(auths) } });
  const candidates = ['a', 'b', 'c', 'd'].map((name) => join(dir, name, 'config.json'));
  const source = await createDockerConfigSource({ candidates, ...manualRefresh });
  t.strictSame(await describedParts(t, source, dir), [
    '/a/config.json | absent | there is no such file',
    '/b/config.json | left-out | is not valid JSON',
    '/c/config.json | used | in use: the first readable candidate; entries: 1 | the kubelet caches the file for 5 minutes; here a change counts at once',
    '/c/config.json | left-out | entries skipped because their keys are not registries: 1',
    '/d/config.json | unused | not read, because an earlier candidate is in use',
  ]);
});

const isBroken = (metrics: Metrics, source: string) =>
  seriesOf(metrics, `archwright_source_broken{source="${source}"}`);

t.test('the gauge shows whether the current content can be used', async (t) => {
  const dir = t.testdir({ 'a.example.toml': good });
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
