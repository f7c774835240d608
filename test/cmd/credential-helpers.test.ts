/** Docker credential helpers are real programs here, and registries are real servers. */
import { chmodSync, createReadStream, readFileSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { helperLimits, openCredentialHelpers } from '../../cmd/wiring/credential-helpers.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { silentLog } from '../fleet/support.ts';
import { multiArch } from '../support/registry/content.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { run } from './run.ts';
import { childEnv, directory, files, program, registry, resultsIn, write } from './world.ts';

const multi = multiArch(['linux/amd64', 'linux/arm64']);

/** Programs in a directory of their own, and a config.json. */
function machine(t: Test, helpers: Readonly<Record<string, string>>, config: object) {
  const root = directory(t);
  const bin = Object.fromEntries(
    Object.entries(helpers).map(([name, script]) => [
      `bin/docker-credential-${name}`,
      `#!/bin/sh\n${script}\n`,
    ]),
  );
  write(root, { ...bin, 'config.json': JSON.stringify(config) });
  for (const path of Object.keys(bin)) chmodSync(`${root}/${path}`, 0o755);
  return {
    root,
    file: `${root}/config.json`,
    env: { PATH: `${root}/bin:${process.env['PATH'] ?? ''}`, DOCKER_CONFIG: root, OUT: `${root}/out` },
  };
}

const answer = (user: string, text: string): string =>
  `cat >>"$OUT"; echo >>"$OUT"; echo '${JSON.stringify({ ServerURL: 'x', Username: user, Secret: text })}'`;

t.test('a login in a helper is used, and the helper runs once for each registry', async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'pass-of-ann' } } });
  server.push('team/app', 'v1', multi);
  server.push('team/app', 'v2', multi);
  const images = [`${server.host}/team/app:v1`, `${server.host}/team/app:v2`];
  const cases: [what: string, config: object][] = [
    ['credsStore', { credsStore: 'good', auths: { [server.host]: {} } }],
    ['credHelpers', { credHelpers: { [server.host]: 'good' }, credsStore: 'bad' }],
    ['credHelpers with a scheme', { credHelpers: { [`https://${server.host}`]: 'good' } }],
  ];
  for (const [what, config] of cases) {
    const { env, root } = machine(t, { good: answer('ann', 'pass-of-ann'), bad: 'exit 3' }, config);
    const { code, out, err } = await run(['inspect', '-o', 'json', ...images], { env });
    t.equal(code, 0, what);
    t.equal(err, '', what);
    t.same(
      resultsIn(out).map(({ credentialSource }) => credentialSource),
      ['docker-config', 'docker-config'],
      what,
    );
    t.equal(readFileSync(`${root}/out`, 'utf8'), `${server.host}\n`, 'asked for the registry, once');
    t.notMatch(out, /pass-of-ann/);
  }
});

t.test('a helper without a credential leaves the request anonymous, without a word', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  const { env } = machine(
    t,
    { none: 'echo credentials not found in native keychain; exit 1' },
    { credsStore: 'none' },
  );
  const { code, out, err } = await run(['inspect', '-o', 'json', `${server.host}/team/app:v1`], { env });
  t.equal(code, 0);
  t.equal(err, '');
  t.equal(resultsIn(out)[0]?.credentialSource, 'anonymous');
});

t.test('broken helpers are named, cost a bounded time, and nothing that they print is shown', async (t) => {
  const limits = { ...helperLimits, timeoutMs: 300 };
  const cases: [what: string, script: string, problem: RegExp][] = [
    [
      'hangs',
      'sleep 600',
      /no credential for r\.example: was killed because it did not end within 0\.3 seconds/,
    ],
    ['hangs with a child', 'sleep 600 & sleep 600', /was killed/],
    ['prints garbage', 'echo hunter22-garbage', /is not valid JSON/],
    ['prints bytes', "printf '\\377\\376'", /is not UTF-8/],
    ['prints a list', 'echo "[]"', /printed no JSON object/],
    ['prints no secret', 'echo "{\\"Username\\":\\"hunter22\\"}"', /printed no Username and Secret/],
    ['prints without end', 'yes hunter22-hunter22', /more than 262144 bytes|was killed/],
    ['fails', 'echo hunter22; echo sorry >&2; exit 4', /exit status 4: sorry/],
    ['is not a program', 'exit', /printed|valid JSON/],
  ];
  for (const [what, script, problem] of cases) {
    const { file, env } = machine(t, { x: script }, { credsStore: 'x' });
    const source = await openCredentialHelpers({ file, env, log: silentLog, limits });
    t.strictSame(await source?.lookup('r.example/team/app'), [], what);
    const problems = source?.problems() ?? [];
    t.equal(problems.length, 1, what);
    t.match(problems[0]?.message, problem, what);
    t.notMatch(JSON.stringify(problems), /hunter22/, what);
    await source?.close();
  }
});

t.test('names of helpers are no paths and no commands', async (t) => {
  const names = ['../../bin/sh', 'x;touch /tmp/x', '$(id)', '/bin/sh', 'a b', '-x', ''];
  for (const name of names) {
    const { file, env } = machine(t, {}, { credsStore: name });
    const source = await openCredentialHelpers({ file, env, log: silentLog });
    t.strictSame((await source?.lookup('r.example/a')) ?? [], [], name);
    t.equal(source?.problems().length ?? 0, name === '' ? 0 : 1, name);
  }
  const { file, env } = machine(t, {}, { credsStore: 'gone' });
  const source = await openCredentialHelpers({ file, env, log: silentLog });
  t.strictSame(await source?.lookup('r.example/a'), []);
  t.match(source?.problems(), [{ origin: 'docker-credential-gone', message: /cannot be started: ENOENT/ }]);
});

t.test('Docker Hub has its own name, and tokens are told apart from passwords', async (t) => {
  const { file, env, root } = machine(
    t,
    { hub: answer('<token>', 'token-of-hub') },
    {
      credHelpers: { 'https://index.docker.io/v1/': 'hub', 'broken.example': 3 },
      auths: { 'az.example': { auth: 'MDAwMDo=', identitytoken: 'token-of-az' }, 'no.example': 'x' },
    },
  );
  const source = await openCredentialHelpers({ file, env, log: silentLog });
  const lookup = async (repository: string) =>
    (await source?.lookup(repository))?.map(({ credential: { username, password, isIdentityToken } }) => [
      username,
      reveal(password),
      isIdentityToken,
    ]);
  t.strictSame(await lookup('docker.io/library/nginx'), [['', 'token-of-hub', true]]);
  t.strictSame(await lookup('az.example/a'), [['', 'token-of-az', true]]);
  t.strictSame(await lookup('other.example/a'), []);
  t.equal(readFileSync(`${root}/out`, 'utf8'), 'https://index.docker.io/v1/\n');
  t.match(source?.problems(), [{ message: 'a value of credHelpers is not the name of a credential helper' }]);
});

t.test('an identity token goes to the token server, as such', async (t) => {
  const issuer = createIssuer({ users: { ann: 'pass-of-ann' } });
  const server = await registry(t, { auth: { kind: 'bearer', issuer } });
  server.push('team/app', 'v1', multi);
  const { env } = machine(
    t,
    { az: answer('<token>', 'token-of-az') },
    { credHelpers: { [server.host]: 'az' } },
  );
  await run(['inspect', `${server.host}/team/app:v1`], { env });
  const grants = server.requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => new URLSearchParams(body));
  t.same([grants.length, grants[0]?.get('refresh_token')], [1, 'token-of-az']);
});

t.test('on a node, and with files that are named, no helper runs', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  const { env, root } = machine(t, { x: 'echo ran >"$OUT"' }, { credsStore: 'x' });
  const { directory: empty } = files(t, { 'named.json': '{}' });
  for (const args of [
    ['--host-root', empty],
    ['--docker-config', `${empty}/named.json`],
  ]) {
    await run(['inspect', ...args, `${server.host}/team/app:v1`], { env });
    t.throws(() => readFileSync(`${root}/out`), { code: 'ENOENT' });
  }
});

t.test('a command that is stopped leaves no helper behind', async (t) => {
  const { env, root } = machine(
    t,
    { slow: 'exec 3>"$OUT"; echo ready >&3; exec sleep 600' },
    { credHelpers: { 'r.example': 'slow' } },
  );
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  const images = [`${server.host}/team/app:v1`, 'r.example/a:1'].map((image) => ({ name: 'c', image }));
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: {}, spec: { containers: images } };
  write(root, { 'pod.json': JSON.stringify(object) });
  execFileSync('mkfifo', [`${root}/out`]);
  const child = spawn(process.execPath, [program, 'check', `${root}/pod.json`], {
    env: { ...childEnv, ...env, XDG_CACHE_HOME: root },
  });
  t.teardown(() => child.kill('SIGKILL'));
  // The helper has the pipe open as long as it lives.
  const pipe = createReadStream(`${root}/out`);
  const [ready] = (await once(pipe, 'data')) as [Buffer];
  t.equal(String(ready), 'ready\n');
  await server.waitFor(({ method }) => method === 'GET');
  const ended = Promise.all([once(child, 'close'), once(pipe, 'end')]);
  pipe.resume();
  child.kill('SIGINT');
  const [[code]] = (await ended) as [[number], []];
  t.equal(code, 130);
});
