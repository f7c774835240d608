/** Sources in files: the docker config of the node, and what is told of every source. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  createDockerConfigSource,
  defaultDockerConfigPathCandidates,
  dockerLoginCandidates,
  type DockerConfigSourceOptions,
} from '../../../src/credentials/docker/docker-config-file.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';
import { until } from '../../support/until.ts';
import { captureLog, seriesOf } from '../../support/captured.ts';
import { like } from '../../support/like.ts';
import type { LiveCredentialSource } from '../../../src/credentials/sources/file-source.ts';
import { createRegistryTomlSource } from '../../../src/credentials/sources/registry-toml.ts';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';

const config = (username: string) =>
  JSON.stringify({ auths: { 'gcr.io': { username, password: 'hunter22' } } });
const flat = (username: string) => JSON.stringify({ 'gcr.io': { username, password: 'hunter22' } });

async function source(t: Test, options: DockerConfigSourceOptions) {
  const made = await createDockerConfigSource({ ...manualRefresh, ...options });
  t.teardown(() => made.close());
  return {
    made,
    users: async (): Promise<string[]> => {
      const found = await made.lookup('gcr.io/a');
      return found.map(({ credential, origin }) => `${origin} ${credential.username}`);
    },
  };
}

t.test('the first candidate that parses is used, in the kubelet’s default order', async (t) => {
  const root = t.testdir({ var: { lib: { kubelet: {} } }, root: { '.docker': {} }, '.docker': {} });
  const { made, users } = await source(t, { root });
  t.strictSame(await users(), []);
  for (const path of defaultDockerConfigPathCandidates.toReversed()) {
    writeFileSync(join(root, path), path.endsWith('.dockercfg') ? flat(path) : config(path));
    await made.refresh();
    t.strictSame(await users(), [`${path} ${path}`]);
  }
  t.strictSame(made.problems(), []);
});

t.test('the first file that parses ends the search, even if it is empty', async (t) => {
  const root = t.testdir({ a: '{}', b: config('b'), c: flat('flat document'), '.dockercfg': flat('c') });
  t.strictSame(await (await source(t, { root, candidates: ['/none', '/a', '/b'] })).users(), []);
  t.strictSame(
    await (await source(t, { root, candidates: ['/c', '/b'] })).users(),
    [],
    'flat in a config.json',
  );
  t.strictSame(await (await source(t, { root, candidates: ['/.dockercfg', '/b'] })).users(), [
    '/.dockercfg c',
  ]);
});

t.test('a configured file that is missing is a problem', async (t) => {
  const root = t.testdir({ docker: { 'config.json': config('a') } });
  const { made, users } = await source(t, { root, candidates: ['/docker/conifg.json'], isRequired: true });
  t.strictSame(await users(), []);
  like(t, made.problems(), [{ origin: '/docker/conifg.json', message: 'there is no such file' }]);
  like(t, await made.describe(), [{ state: 'left-out' }]);
  const one = await source(t, { root, candidates: ['/none', '/docker/config.json'], isRequired: true });
  t.strictSame(one.made.problems(), [], 'one of several is enough');
});

t.test('unusable files are skipped and reported, missing files are not', async (t) => {
  const root = t.testdir({ half: '{"auths":', dir: {}, good: config('good'), after: '{' });
  symlinkSync('../../out', join(root, 'out'));
  const { log, lines } = captureLog();
  const { made, users } = await source(t, {
    root,
    candidates: ['/none', '/half', '/dir', '/out', '/good', '/after'],
    log,
  });
  t.strictSame(await users(), ['/good good']);
  const problems = made.problems().map(({ origin, message }) => `${origin} ${message}`);
  t.equal(lines.length, 3);
  like(t, problems, [/^\/half is not valid JSON$/, /^\/dir .*not a regular file$/, /^\/out .*leads out of/]);
  await made.refresh();
  t.equal(lines.length, 3, 'each is logged once');
  t.match(lines[0], /"origin":"\/half"/);
  t.notMatch(lines.join(''), /hunter22/);
});

t.test('changes are noticed, and only they change the fingerprint', async (t) => {
  const root = t.testdir({ dir: { config: config('one') } });
  let changes = 0;
  const { made, users } = await source(t, {
    root,
    candidates: ['/dir/config', '/later/config'],
    debounceMs: 5,
    onChange: () => (changes += 1),
  });
  const first = made.fingerprint();
  await made.refresh();
  t.equal(made.fingerprint(), first);
  const untilUsed = (expected: string, name: string) =>
    until(async () => (await users()).join() === expected, name);
  writeFileSync(join(root, 'dir/next'), config('two'));
  renameSync(join(root, 'dir/next'), join(root, 'dir/config'));
  await untilUsed('/dir/config two', 'a replaced file');
  t.not(made.fingerprint(), first);
  rmSync(join(root, 'dir'), { recursive: true });
  await untilUsed('', 'a file removed with its directory');
  mkdirSync(join(root, 'later'));
  writeFileSync(join(root, 'later/config'), config('one'));
  await untilUsed('/later/config one', 'another candidate');
  t.equal(made.fingerprint(), first, 'the same content elsewhere');
  t.ok(changes >= 3);
});

t.test('the user’s directory is the one that docker uses', async (t) => {
  t.strictSame(dockerLoginCandidates({}, '/home/me'), ['/home/me/.docker/config.json']);
  t.strictSame(dockerLoginCandidates({ DOCKER_CONFIG: '' }, '/home/me'), ['/home/me/.docker/config.json']);
  t.strictSame(dockerLoginCandidates({ DOCKER_CONFIG: '/etc/login' }, '/home/me'), [
    '/etc/login/config.json',
  ]);
});

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
});

t.test('an empty and a missing directory are described', async (t) => {
  const dir = t.testdir({ 'readme.txt': '' });
  const empty = await createRegistryTomlSource({ dir, ...manualRefresh });
  t.strictSame(await describedParts(t, empty, dir), [' | unused | holds no file <registry>.toml']);
  const missing = await createRegistryTomlSource({ dir: join(dir, 'creds'), ...manualRefresh });
  t.strictSame(await describedParts(t, missing, dir), ['/creds | left-out | there is no such directory']);
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
