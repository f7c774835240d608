/** `inspect` in the container of a running agent: the agent inspects, with its credentials. */
import { existsSync, linkSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { socketPathIn } from '../../../daemon/local/protocol.ts';
import { createPki } from '../../fleet/support.ts';
import { until } from '../../support/until.ts';
import { agentArgs, startAgent } from '../agent/agent.ts';
import { run } from '../run.ts';
import {
  childEnv,
  directory,
  dockerConfig,
  files,
  program,
  pullSecret,
  registryWithApp,
  resultsIn,
} from '../world.ts';

const users = { ann: 'password-of-ann', bob: 'password-of-bob' };

/** An agent with a credential that only it has, and a private registry. */
async function world(t: Test) {
  const { server, image } = await registryWithApp(t, { auth: { kind: 'basic', users } });
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
  const inspect = (...more: string[]) => run(['inspect', ...more], { env });
  return { server, root, stateDir, start: () => startAgent(t, pki, args), env, image, inspect, pki };
}

t.test('the agent inspects with its own credentials, bypassing its memory', async (t) => {
  const { server, root, stateDir, start, image, inspect } = await world(t);
  const agent = await start();
  await until(() => existsSync(socketPathIn(stateDir)), 'the socket');
  t.equal(statSync(socketPathIn(stateDir)).mode & 0o777, 0o600, 'accessible only to its owner');
  const first = await inspect('-v', image, 'Not:An:Image', `${server.host}/gone`);
  t.equal(first.code, 1);
  t.equal(first.err, '');
  const label = `registry-toml ${server.host} (${root}/creds/${server.host}.toml)`;
  t.match(first.out, /\nInspected by the running agent\.\nCredential sources, in order:\n/);
  t.match(first.out, `\n  registry-toml: ${root}/creds\n`);
  const request = `GET +manifest +https://${server.host}/v2/team/app/manifests/v1 +anonymous +401`;
  t.match(first.out, new RegExp(request));
  t.ok(first.out.includes(`  ${label}  200  `), first.out);
  t.match(first.out, /\nNot:An:Image: invalid-reference: /);
  server.clearRequests();
  const second = await inspect('-o', 'json', image);
  t.equal(second.code, 0);
  t.match(resultsIn(second.out), [{ image, source: 'registry', credentialSource: 'registry-toml' }]);
  t.ok(server.requests.length > 0, 'new requests');
  t.notMatch(first.out + first.err, /password-of/);

  const own = await inspect('--local', image);
  t.match(own.out, /unauthorized: .*without a credential/, 'without the agent, no credential');
  const settings = await inspect(`--creds-dir=${root}/creds`, '-v', image);
  t.equal(settings.code, 0);
  t.notMatch(settings.out, /running agent/, "with settings, this process's apply");

  t.equal(await agent.stop(), 0);
  t.notOk(existsSync(socketPathIn(stateDir)), 'removed at the end');
  t.match((await inspect(image)).out, /unauthorized: /, 'without an agent, this process inspects');
});

/** Prints whether the process has loaded `child_process`, which only the agent's code needs. */
const witness = `data:text/javascript,process.on('exit', () => process.stderr.write(String(process.moduleLoadList.includes('NativeModule child_process'))))`;

t.test('a client does not load the code of an agent', async (t) => {
  const { start, image, env } = await world(t);
  await start();
  const errorsOf = async (...flags: string[]): Promise<string> => {
    // Tap's hooks would load it too.
    const script = 'unset NODE_OPTIONS; exec "$0" "$@"';
    const args = ['-c', script, process.execPath, '--import', witness, program, 'inspect', ...flags, image];
    const stdio = ['ignore', 'ignore', 'pipe'] as const;
    return await text(spawn('/bin/sh', args, { env: { ...childEnv, ...env }, stdio: [...stdio] }).stderr);
  };
  t.equal(await errorsOf(), 'false');
  t.equal(await errorsOf('--local'), 'true');
});

t.test("the user's pull secrets are passed to the agent, with their names", async (t) => {
  const { server, start, image, inspect } = await world(t);
  await start();
  const login = dockerConfig(`${server.host}/team`, 'bob', 'password-of-bob');
  const { secret } = files(t, { secret: pullSecret(login, { name: 'regcred', namespace: 'shop' }) });
  const { code, out } = await inspect('-v', '--pull-secret', secret, '--service-account=shop/builder', image);
  t.equal(code, 0);
  t.match(out, /\nInspected by the running agent\.\n/);
  t.match(out, `\n  pull-secret: ${secret}\n`);
  t.ok(out.includes(`pull-secret ${server.host}/team (shop/regcred)  200`), out);
  t.notMatch(out, /password-of/);
});

t.test('a stopped client cancels its inspection', async (t) => {
  const { server, start, image, env } = await world(t);
  const agent = await start();
  server.faults.add(/manifests/, { kind: 'hold' });
  const stop = new AbortController();
  const running = run(['inspect', image], { env, stop: stop.signal });
  await server.waitFor(({ path }) => path.includes('manifests'));
  stop.abort('SIGINT');
  t.equal((await running).code, 130);
  await until(() => server.connections === 0, 'the request ends');
  t.equal(await agent.stop(), 0);
  t.notMatch(agent.log(), /failed unexpectedly/);
});

t.test('an agent that fails leaves the images open', async (t) => {
  const { stateDir, image, inspect } = await world(t);
  const agent = createHttpServer(
    (_, response) => void response.writeHead(503).end('{"error":{"message":"busy"}}'),
  );
  agent.listen(socketPathIn(stateDir));
  await once(agent, 'listening');
  t.teardown(() => void agent.close());
  t.match(await inspect(image), {
    code: 3,
    out: '',
    err: 'archwright inspect: the agent answered 503: busy; --local inspects without it\n',
  });
});

t.test('the socket of a killed agent is replaced; an agent that cannot have one still runs', async (t) => {
  const { stateDir, start, image, inspect } = await world(t);
  const path = socketPathIn(stateDir);
  // A socket without a listener, as after a killed process.
  const dead = createServer().listen(path);
  await once(dead, 'listening');
  const left = join(stateDir, 'left.sock');
  linkSync(path, left);
  dead.close();
  await once(dead, 'close');
  renameSync(left, path);
  t.match((await inspect(image)).out, /unauthorized: /, 'without a listener');
  const agent = await start();
  t.equal((await inspect(image)).code, 0);
  await agent.stop();

  writeFileSync(path, 'a foreign file');
  const second = await start();
  t.match(second.log(), /no socket for inspect/);
  t.ok(statSync(path).isFile());
  t.match((await inspect(image)).out, /unauthorized: /);
  const long = join(directory(t), 'x'.repeat(120));
  mkdirSync(long);
  const other = await run(['inspect', image], { env: { ARCHWRIGHT_STATE_DIR: long } });
  t.match(other.out, /unauthorized: /);
});
