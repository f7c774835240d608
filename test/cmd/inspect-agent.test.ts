/** `inspect` in the container of a running agent: the agent inspects, with its credentials. */
import { existsSync, linkSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { socketPathIn } from '../../daemon/local/protocol.ts';
import { createPki } from '../fleet/support.ts';
import { until } from '../serving/support.ts';
import { multiArch } from '../support/registry/content.ts';
import { agentArgs, startAgent } from './agent.ts';
import { run } from './run.ts';
import {
  childEnv,
  directory,
  dockerConfig,
  files,
  program,
  pullSecret,
  registry,
  resultsIn,
} from './world.ts';

const users = { ann: 'password-of-ann', bob: 'password-of-bob' };

/** An agent with a credential that only it has, and a private registry. */
async function world(t: Test) {
  const server = await registry(t, { auth: { kind: 'basic', users } });
  server.push('team/app', 'v1', multiArch(['linux/amd64', 'linux/arm64']));
  const { directory: root } = files(t, {
    [`creds/${server.host}.toml`]: 'user = "ann"\nsecret = "password-of-ann"\n',
    'registry.pem': server.ca,
    'host/etc/hostname': '',
  });
  const stateDir = join(root, 'state');
  mkdirSync(stateDir);
  const pki = await createPki(t);
  const args = [
    ...agentArgs(pki, stateDir),
    `--creds-dir=${root}/creds`,
    `--host-root=${root}/host`,
    `--ca-files=${root}/registry.pem`,
  ];
  const env = { ARCHWRIGHT_STATE_DIR: stateDir };
  const image = `${server.host}/team/app:v1`;
  const inspect = (...more: string[]) => run(['inspect', ...more], { env });
  return { server, root, stateDir, start: () => startAgent(t, pki, args), env, image, inspect, pki };
}

t.test('the agent inspects with its own credentials, whatever it remembers', async (t) => {
  const { server, root, stateDir, start, image, inspect } = await world(t);
  const agent = await start();
  await until('the socket', () => existsSync(socketPathIn(stateDir)));
  t.equal(statSync(socketPathIn(stateDir)).mode & 0o777, 0o600, 'for its owner only');
  const first = await inspect('-v', image, 'Not:An:Image', `${server.host}/gone`);
  t.equal(first.code, 1);
  t.equal(first.err, '');
  const label = `registry-toml ${server.host} (${root}/creds/${server.host}.toml)`;
  t.match(first.out, /\nInspected by the running agent\.\nCredential sources, in order:\n/);
  t.match(first.out, `\n  registry-toml: ${root}/creds\n`);
  t.match(
    first.out,
    new RegExp(`GET +manifest +https://${server.host}/v2/team/app/manifests/v1 +anonymous +401`),
  );
  t.ok(first.out.includes(`  ${label}  200  `), first.out);
  t.match(first.out, /\nNot:An:Image: invalid-reference: /);
  server.clearRequests();
  const second = await inspect('-o', 'json', image);
  t.equal(second.code, 0);
  t.match(resultsIn(second.out), [{ image, source: 'registry', credentialSource: 'registry-toml' }]);
  t.ok(server.requests.length > 0, 'asked again');
  t.notMatch(first.out + first.err, /password-of/);

  const own = await inspect('--local', image);
  t.match(own.out, /unauthorized: .*without a credential/, 'this process has no credential');
  const settings = await inspect(`--creds-dir=${root}/creds`, '-v', image);
  t.equal(settings.code, 0);
  t.notMatch(settings.out, /running agent/, 'settings are those of this process');

  t.equal(await agent.stop(), 0);
  t.notOk(existsSync(socketPathIn(stateDir)), 'removed at the end');
  t.match((await inspect(image)).out, /unauthorized: /, 'without an agent this process inspects');
});

/** Prints whether the process has loaded what starts plugins, and with it the agent's code. */
const witness = `data:text/javascript,process.on('exit', () => process.stderr.write(String(process.moduleLoadList.includes('NativeModule child_process'))))`;

t.test('the process that asks does not load the code of an agent', async (t) => {
  const { start, image, env } = await world(t);
  await start();
  const errorsOf = async (...flags: string[]): Promise<string> => {
    // What tap adds to a process would load it too.
    const script = 'unset NODE_OPTIONS; exec "$0" "$@"';
    const args = ['-c', script, process.execPath, '--import', witness, program, 'inspect', ...flags, image];
    const child = spawn('/bin/sh', args, {
      env: { ...childEnv, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return await text(child.stderr);
  };
  t.equal(await errorsOf(), 'false');
  t.equal(await errorsOf('--local'), 'true');
});

t.test('pull secrets of the person go along, under their names', async (t) => {
  const { server, start, image, inspect } = await world(t);
  await start();
  const { 'secret.json': secret } = files(t, {
    'secret.json': pullSecret(dockerConfig(`${server.host}/team`, 'bob', 'password-of-bob'), {
      name: 'regcred',
      namespace: 'shop',
    }),
  });
  const { code, out } = await inspect(
    '-v',
    '--pull-secret',
    secret,
    '--service-account',
    'shop/builder',
    image,
  );
  t.equal(code, 0);
  t.match(out, /\nInspected by the running agent\.\n/);
  t.match(out, `\n  pull-secret: ${secret}\n`);
  t.ok(out.includes(`pull-secret ${server.host}/team (shop/regcred)  200`), out);
  t.notMatch(out, /password-of/);
});

t.test('a client that stops ends its inspection', async (t) => {
  const { server, start, image, env } = await world(t);
  const agent = await start();
  server.faults.add(/manifests/, { kind: 'hold' });
  const stop = new AbortController();
  const running = run(['inspect', image], { env, stop: stop.signal });
  await server.waitFor(({ path }) => path.includes('manifests'));
  stop.abort('SIGINT');
  t.equal((await running).code, 130);
  await until('the request ends', () => server.connections === 0);
  t.equal(await agent.stop(), 0);
  t.notMatch(agent.log(), /failed unexpectedly/);
});

t.test('the socket of a killed agent is replaced; without one the agent runs', async (t) => {
  const { stateDir, start, image, inspect } = await world(t);
  const path = socketPathIn(stateDir);
  // A socket without a listener, as a killed process leaves it.
  const dead = createServer();
  dead.listen(path);
  await once(dead, 'listening');
  const left = join(stateDir, 'left.sock');
  linkSync(path, left);
  dead.close();
  await once(dead, 'close');
  renameSync(left, path);
  t.match((await inspect(image)).out, /unauthorized: /, 'nobody listens');
  const agent = await start();
  t.equal((await inspect(image)).code, 0);
  await agent.stop();

  writeFileSync(path, 'a file of somebody else');
  const second = await start();
  t.match(second.log(), /no socket for inspect/);
  t.ok(statSync(path).isFile());
  t.match((await inspect(image)).out, /unauthorized: /);
  const long = join(directory(t), 'x'.repeat(120));
  mkdirSync(long);
  const other = await run(['inspect', image], { env: { ARCHWRIGHT_STATE_DIR: long } });
  t.match(other.out, /unauthorized: /);
});
