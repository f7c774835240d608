import t, { type Test } from 'tap';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import {
  createDockerConfigSource,
  defaultDockerConfigPathCandidates,
  dockerLoginCandidates,
  type DockerConfigSourceOptions,
} from '../../../src/credentials/docker/docker-config-file.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { noTimers } from '../../support/fake-clock.ts';

const byHand = { pollMs: 600_000, debounceMs: 600_000 };
const config = (username: string) =>
  JSON.stringify({ auths: { 'gcr.io': { username, password: 'hunter22' } } });
const flat = (username: string) => JSON.stringify({ 'gcr.io': { username, password: 'hunter22' } });

async function source(t: Test, options: DockerConfigSourceOptions) {
  const made = await createDockerConfigSource({ ...byHand, ...options });
  t.teardown(() => made.close());
  return {
    made,
    users: async (): Promise<string[]> => {
      const found = await made.lookup('gcr.io/a');
      return found.map(({ credential, origin }) => `${origin} ${credential.username}`);
    },
  };
}

t.test('the first candidate that parses serves, by the kubelet’s default order', async (t) => {
  const root = t.testdir({ var: { lib: { kubelet: {} } }, root: { '.docker': {} }, '.docker': {} });
  const { made, users } = await source(t, { root });
  t.same(await users(), []);
  for (const path of defaultDockerConfigPathCandidates.toReversed()) {
    writeFileSync(join(root, path), path.endsWith('.dockercfg') ? flat(path) : config(path));
    await made.refresh();
    t.same(await users(), [`${path} ${path}`]);
  }
  t.same(made.problems(), []);
});

t.test('the first file that parses ends the search, even if it is empty', async (t) => {
  const root = t.testdir({ a: '{}', b: config('b'), c: flat('flat document'), '.dockercfg': flat('c') });
  t.same(await (await source(t, { root, candidates: ['/none', '/a', '/b'] })).users(), []);
  t.same(await (await source(t, { root, candidates: ['/c', '/b'] })).users(), [], 'flat in a config.json');
  t.same(await (await source(t, { root, candidates: ['/.dockercfg', '/b'] })).users(), ['/.dockercfg c']);
});

t.test('a file that was named by a person and is missing is a problem', async (t) => {
  const root = t.testdir({ docker: { 'config.json': config('a') } });
  const { made, users } = await source(t, { root, candidates: ['/docker/conifg.json'], isRequired: true });
  t.same(await users(), []);
  t.match(made.problems(), [
    {
      origin: '/docker/conifg.json',
      message: 'there is no such file; did you mean /docker/config.json?',
    },
  ]);
  t.match(await made.describe(), [{ state: 'left-out' }]);
  const one = await source(t, { root, candidates: ['/none', '/docker/config.json'], isRequired: true });
  t.same(one.made.problems(), [], 'one of several is enough');
});

t.test('unusable files are skipped and reported, missing files are not', async (t) => {
  const root = t.testdir({ half: '{"auths":', dir: {}, good: config('good'), after: '{' });
  symlinkSync('../../out', join(root, 'out'));
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const { made, users } = await source(t, {
    root,
    candidates: ['/none', '/half', '/dir', '/out', '/good', '/after'],
    log: createLog({ destination }),
  });
  t.same(await users(), ['/good good']);
  const problems = made.problems().map(({ origin, message }) => `${origin} ${message}`);
  t.equal(problems.length, 3);
  t.match(problems, [/^\/half is not valid JSON$/, /^\/dir .*not a regular file$/, /^\/out .*leads out of/]);
  await made.refresh();
  t.equal(lines.length, 3, 'each is logged once');
  t.match(lines[0], /"origin":"\/half"/);
  t.notMatch(lines.join(''), /hunter22/);
});

t.test('a file with an unusable entry is used without it', async (t) => {
  const root = t.testdir({ a: JSON.stringify({ auths: { 'gcr.io': {}, 'gcr.io:*': {} } }) });
  const { made, users } = await source(t, { root, candidates: ['/a'] });
  t.same(await users(), ['/a ']);
  t.match(made.problems(), [{ source: 'docker-config', origin: '/a', message: /^entries skipped .*: 1$/ }]);
});

t.test('a file that breaks stays in force for as long as the kubelet may remember it', async (t) => {
  const root = t.testdir({ a: config('a'), b: config('b') });
  let now = 0;
  const clock = { ...noTimers, now: () => 0, monotonic: () => now };
  const { made, users } = await source(t, { root, candidates: ['/a', '/b'], clock });
  writeFileSync(join(root, 'a'), '{"auths":{"gcr');
  now = 299_999;
  await made.refresh();
  t.same(await users(), ['/a a']);
  t.match(made.problems(), [{ origin: '/a', message: 'is not valid JSON' }]);
  now = 300_000;
  await made.refresh();
  t.same(await users(), ['/b b'], 'then the next one serves, as on the node');
  writeFileSync(join(root, 'a'), config('new'));
  await made.refresh();
  t.same(await users(), ['/a new']);
  t.same(made.problems(), []);
  rmSync(join(root, 'a'));
  await made.refresh();
  t.same(await users(), ['/b b'], 'one that is gone is gone at once');
});

t.test('changes are noticed, and its fingerprint changes only with them', async (t) => {
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
  const until = async (expected: string[]) => {
    for (let tries = 0; tries < 500; tries += 1) {
      if (JSON.stringify(await users()) === JSON.stringify(expected)) return true;
      await pause(10);
    }
    return false;
  };
  writeFileSync(join(root, 'dir/next'), config('two'));
  renameSync(join(root, 'dir/next'), join(root, 'dir/config'));
  t.ok(await until(['/dir/config two']), 'replaced');
  t.not(made.fingerprint(), first);
  rmSync(join(root, 'dir'), { recursive: true });
  t.ok(await until([]), 'removed with its directory');
  mkdirSync(join(root, 'later'));
  writeFileSync(join(root, 'later/config'), config('one'));
  t.ok(await until(['/later/config one']), 'another candidate appears');
  t.equal(made.fingerprint(), first, 'the same content elsewhere');
  t.ok(changes >= 3);
});

t.test('the directory that docker itself would use', async (t) => {
  t.same(dockerLoginCandidates({}, '/home/me'), ['/home/me/.docker/config.json']);
  t.same(dockerLoginCandidates({ DOCKER_CONFIG: '' }, '/home/me'), ['/home/me/.docker/config.json']);
  t.same(dockerLoginCandidates({ DOCKER_CONFIG: '/etc/login' }, '/home/me'), ['/etc/login/config.json']);
});
