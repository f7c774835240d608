import t, { type Test } from 'tap';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createDockerConfigSource,
  defaultDockerConfigPathCandidates,
  dockerLoginCandidates,
  type DockerConfigSourceOptions,
} from '../../../src/credentials/docker/docker-config-file.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';
import { until } from '../../support/until.ts';
import { captureLog } from '../../support/captured.ts';
import { like } from '../../support/like.ts';

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

t.test('as on the node, a broken or removed file makes the next one count', async (t) => {
  const root = t.testdir({ a: config('a'), b: config('b') });
  const { made, users } = await source(t, { root, candidates: ['/a', '/b'] });
  t.strictSame(await users(), ['/a a']);
  for (const change of [
    () => writeFileSync(join(root, 'a'), '{"auths":{"gcr'),
    () => rmSync(join(root, 'a')),
  ]) {
    change();
    await made.refresh();
    t.strictSame(await users(), ['/b b']);
  }
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
