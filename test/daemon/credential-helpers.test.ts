/** Docker credential helpers. They are real programs, and registries are real servers. */
import { chmodSync, createReadStream, readFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { openCredentialHelpers } from '../../daemon/credential-helpers.ts';
import { helperLimits } from '../../daemon/node-programs.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { multiArch } from '../support/registry/content.ts';
import { containers, pod } from '../cmd/explain/explaining.ts';
import { run } from '../cmd/run.ts';
import { child, directory, files, privateApp, registryWithApp, resultsIn, write } from '../cmd/world.ts';
import { silentLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

/** Programs in their own directory, and a config.json. */
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

t.test("a helper's login is used, and the helper runs once per registry", async (t) => {
  const { server, image } = await privateApp(t);
  server.push('team/app', 'v2', multiArch(['linux/amd64', 'linux/arm64']));
  const cases: [what: string, config: object][] = [
    ['credsStore', { credsStore: 'good', auths: { [server.host]: {} } }],
    ['credHelpers', { credHelpers: { [server.host]: 'good' }, credsStore: 'bad' }],
    ['credHelpers with a scheme', { credHelpers: { [`https://${server.host}`]: 'good' } }],
  ];
  for (const [what, config] of cases) {
    const { env, root } = machine(t, { good: answer('ann', 'password-of-ann'), bad: 'exit 3' }, config);
    const { code, out, err } = await run(['inspect', '-o', 'json', image, `${server.host}/team/app:v2`], {
      env,
    });
    t.equal(code, 0, what);
    t.equal(err, '', what);
    const sources = resultsIn(out).map(({ credentialSource }) => credentialSource);
    t.strictSame(sources, ['docker-config', 'docker-config'], what);
    t.equal(readFileSync(`${root}/out`, 'utf8'), `${server.host}\n`, 'one call for the registry');
    t.notMatch(out, /password-of-ann/);
  }
});

t.test('without a credential in the helper, the request is anonymous, without a message', async (t) => {
  const { image } = await registryWithApp(t);
  const none = 'echo credentials not found in native keychain; exit 1';
  const { env } = machine(t, { none }, { credsStore: 'none' });
  const { code, out, err } = await run(['inspect', '-o', 'json', image], { env });
  t.equal(code, 0);
  t.equal(err, '');
  t.equal(resultsIn(out)[0]?.credentialSource, 'anonymous');
});

t.test('broken helpers are named and limited in time, and their output is not shown', async (t) => {
  const limits = { ...helperLimits, timeoutMs: 300 };
  const killed = /no credential for r\.example: was killed because it did not end within 0\.3 seconds/;
  const cases: [what: string, script: string, problem: RegExp][] = [
    ['hangs', 'sleep 600', killed],
    ['prints garbage', 'echo hunter22-garbage', /is not valid JSON/],
    ['prints a list', 'echo "[]"', /printed no JSON object/],
    ['prints no secret', 'echo "{\\"Username\\":\\"hunter22\\"}"', /printed no Username and Secret/],
    ['prints endlessly', 'yes hunter22-hunter22', /more than 262144 bytes|was killed/],
    ['fails', 'echo hunter22; echo sorry >&2; exit 4', /exit status 4: sorry/],
  ];
  for (const [what, script, problem] of cases) {
    const { file, env } = machine(t, { x: script }, { credsStore: 'x' });
    const source = await openCredentialHelpers({ file, env, log: silentLog, limits });
    t.strictSame(await source?.lookup('r.example/team/app'), [], what);
    const problems = source?.problems() ?? [];
    t.equal(problems.length, 1, what);
    like(t, problems[0]?.message, problem, what);
    t.notMatch(JSON.stringify(problems), /hunter22/, what);
    await source?.close();
  }
});

t.test('paths and commands are not accepted as names of helpers', async (t) => {
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
  like(t, source?.problems(), [{ origin: 'docker-credential-gone', message: /cannot be started: ENOENT/ }]);
});

t.test('Docker Hub has its own key, and identity tokens are recognized', async (t) => {
  const hub = answer('<token>', 'token-of-hub');
  const { file, env, root } = machine(
    t,
    { hub },
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
  like(t, source?.problems(), [{ message: 'a value of credHelpers is not the name of a credential helper' }]);
});

t.test('on a node, and with a named file, no helper runs', async (t) => {
  const { image } = await registryWithApp(t);
  const { env, root } = machine(t, { x: 'echo ran >"$OUT"' }, { credsStore: 'x' });
  const { directory: empty } = files(t, { 'named.json': '{}' });
  for (const args of [
    ['--host-root', empty],
    ['--docker-config', `${empty}/named.json`],
  ]) {
    await run(['inspect', ...args, image], { env });
    t.throws(() => readFileSync(`${root}/out`), { code: 'ENOENT' });
  }
});

t.test('a stopped command kills its helper', async (t) => {
  const slow = 'exec 3>"$OUT"; echo ready >&3; exec sleep 600';
  const { env, root } = machine(t, { slow }, { credHelpers: { 'r.example': 'slow' } });
  const { server, image } = await registryWithApp(t);
  write(root, { 'pod.json': pod({ containers: containers(image, 'r.example/a:1') }) });
  execFileSync('mkfifo', [`${root}/out`]);
  const args = ['check', `${root}/pod.json`];
  const checking = child(t, args, undefined, { ...env, XDG_CACHE_HOME: root });
  // The helper keeps the pipe open as long as it runs.
  const pipe = createReadStream(`${root}/out`);
  const [ready] = (await once(pipe, 'data')) as [Buffer];
  t.equal(String(ready), 'ready\n');
  await server.waitFor(({ method }) => method === 'GET');
  const ended = Promise.all([checking.ended, once(pipe, 'end')]);
  pipe.resume();
  checking.kill('SIGINT');
  const [{ code }] = await ended;
  t.equal(code, 130);
});
