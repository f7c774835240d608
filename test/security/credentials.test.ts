/** Attacks on credentials: by echoes of a registry, look-alike names of images, and output of plugins. */
import { join } from 'node:path';
import t from 'tap';
import { run } from '../cmd/run.ts';
import { directory, dockerConfig, pullSecret, write } from '../cmd/world.ts';
import { createCa } from '../support/certificates.ts';
import { startRegistry } from '../support/registry/client.ts';
import { openNode, pluginConfig, writePlugin } from './support.ts';
import { like } from '../support/like.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { multiArch } from '../support/registry/content.ts';

/** Passwords with characters that each encoding writes differently. */
const passwords = {
  'of-pod': 'pod "ä ss/wörd+? of-pod',
  'of-toml': 'toml "ä ss/wörd+? of-toml',
  'of-docker': 'docker "ä ss/wörd+? of-docker',
  'of-plugin': 'plugin "ä ss/wörd+? of-plugin',
} as const;

/** All encodings of a password, and its part of the base64 of `user:password`. */
function formsOf(user: string, password: string): string[] {
  const pair = Buffer.from(`${user}:${password}`);
  return [
    password,
    JSON.stringify(password).slice(1, -1),
    encodeURIComponent(password),
    new URLSearchParams({ password }).toString().slice('password='.length),
    pair.toString('base64'),
    pair.toString('base64url'),
    pair.toString('base64').slice(8, 24),
    encodeURIComponent(pair.toString('base64')),
  ];
}

t.test('no form of a secret is printed or logged, for any response', async (t) => {
  const ca = await createCa();
  const evil = await startRegistry(t, { tls: ca, auth: { kind: 'basic', users: {} } });
  const root = directory(t);
  write(root, {
    'config.json': dockerConfig(evil.host, 'ann', passwords['of-docker']),
    'plugins.json': pluginConfig([evil.host]),
    [`creds/${evil.host}.toml`]: `user = "ann"\nsecret = ${JSON.stringify(passwords['of-toml'])}\n`,
    'pod.json': pullSecret(dockerConfig(evil.host, 'ann', passwords['of-pod'])),
    'ca.pem': ca.cert,
  });
  const plugins = directory(t);
  writePlugin(plugins, { [evil.host]: { username: 'ann', password: passwords['of-plugin'] } });
  const settings = {
    'docker-config': join(root, 'config.json'),
    'creds-dir': join(root, 'creds'),
    'kubelet-config-config': join(root, 'plugins.json'),
    'kubelet-config-bin-dir': plugins,
    'ca-files': join(root, 'ca.pem'),
  };
  const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const echoed = Object.values(passwords).flatMap((password) => formsOf('ann', password));
  const header = echoed.filter((text) => /^[\x21-\x7e]*$/.test(text)).join(' ');
  const answers = [401, 404, 429, 302, 200].map((status) => ({
    status,
    body: JSON.stringify({ errors: [{ code: 'DENIED', message: echoed.join(' '), detail: echoed }] }),
    headers: {
      'www-authenticate': `Basic realm="${header.replaceAll('"', '')}"`,
      'content-type': `application/${echoed.at(-2)?.slice(0, 40)}`,
      'x-echo': header,
      location: `https://${evil.host}/?${header.replaceAll(' ', '&')}`,
    },
  }));
  for (const { status, body, headers } of answers) {
    evil.faults.clear();
    evil.clearRequests();
    // The first response requests a login, so each credential is sent.
    evil.faults.add(/./, { kind: 'status', status, body, headers });
    if (status !== 401) {
      const challenge = { 'www-authenticate': 'Basic realm="x"' };
      evil.faults.add(/./, { kind: 'status', status: 401, headers: challenge }, { times: 1 });
    }
    const { out, err } = await run([
      'inspect',
      '--verbose',
      '--log-level=trace',
      `--pull-secret=${join(root, 'pod.json')}`,
      ...flags,
      `${evil.host}/team/app:v1`,
    ]);
    t.ok(
      evil.requests.some((request) => request.headers.authorization !== undefined),
      `${status}: a login was sent`,
    );
    for (const form of echoed) t.notOk(`${out}${err}`.includes(form), `${status}: ${form}`);
  }
});

t.test('no secret is in the agent’s log', async (t) => {
  const evil = await startRegistry(t, { tls: false, auth: { kind: 'basic', users: {} } });
  const root = directory(t);
  write(root, {
    'config.json': dockerConfig(evil.host, 'ann', passwords['of-docker']),
    'creds/broken.example.toml': `secret = ${JSON.stringify(passwords['of-toml'])}\nuser = `,
    'plugins.json': pluginConfig([evil.host]),
  });
  const plugins = directory(t);
  writePlugin(plugins, {});
  write(plugins, {
    plugin: `#!/bin/sh\necho 'password=${passwords['of-plugin']}' >&2\necho '${passwords['of-plugin']}'\nexit 1\n`,
  });
  const node = await openNode(t, {
    dockerConfigPathCandidates: join(root, 'config.json'),
    credsDir: join(root, 'creds'),
    'kubeletConfig.config': join(root, 'plugins.json'),
    'kubeletConfig.binDir': plugins,
    insecureRegistries: evil.host,
  });
  const facts = await node.inspect(`${evil.host}/team/app:v1`);
  like(t, facts, { error: { code: 'unauthorized' } });
  t.ok(node.lines.length >= 2, 'the broken file and the plugin are logged');
  const output = [...node.lines, facts, node.inspection.problems()];
  t.notMatch(JSON.stringify(output), /ss\/w|of-docker|of-toml|of-plugin/);
});

const user = { username: 'ann', password: 'password-of-ann' };

/** Names that are not quay.io, but that a careless comparison accepts. */
const hosts = [
  'quay.io.evil.io',
  'notquay.io',
  'not-quay.io',
  'quay.io.:443',
  'quay.ioo',
  'quay.i',
  'uay.io',
];
const others = ['evil.quay.io', 'quay.io-evil.io', 'quay-io', 'quayxio', 'quay.io:443', 'Quay.io', 'QUAY.IO'];
const paths = ['evil.io/quay.io', 'evil.io:443/quay.io', 'localhost/quay.io', 'evil.io/https/quay.io'];
const lookalikes = [...hosts, ...others, ...paths].map((prefix) => `${prefix}/x`);

t.test('no source has a credential for such names', async (t) => {
  const root = directory(t);
  write(root, {
    'var/lib/kubelet/config.json': dockerConfig('https://quay.io/v2/', user.username, user.password),
    'plugins.json': pluginConfig(['quay.io']),
    'creds/quay.io.toml': 'user = "ann"\nsecret = "password-of-ann"\n',
  });
  const plugins = directory(t);
  // It offers the credential for every name.
  writePlugin(plugins, {
    'quay.io': user,
    ...Object.fromEntries(lookalikes.map((name) => [name.replace(/\/.*/, ''), user])),
  });
  const { inspection } = await openNode(t, {
    dockerConfigPathCandidates: join(root, 'var/lib/kubelet/config.json'),
    credsDir: join(root, 'creds'),
    'kubeletConfig.config': join(root, 'plugins.json'),
    'kubeletConfig.binDir': plugins,
  });
  const secret = JSON.parse(pullSecret(dockerConfig('quay.io', 'ann', 'password-of-ann'))) as Secret;
  const pod = createPullSecretSource([secret]);
  const sources: readonly Pick<LiveCredentialSource, 'name' | 'lookup'>[] = [
    pod,
    ...inspection.sources.map(({ source }) => source).filter(({ name }) => name !== 'containerd'),
  ];
  t.equal(sources.length, 4);
  for (const source of sources) {
    t.equal((await source.lookup('quay.io/team/app')).length, 1, `${source.name} has it for quay.io`);
    for (const name of lookalikes) {
      const repository = repositoryOf(name);
      if (repository !== undefined)
        t.strictSame(await source.lookup(repository), [], `${source.name}: ${name}`);
    }
  }
});

/** The repository as the agent parses it; `undefined` for an invalid reference. */
function repositoryOf(name: string): string | undefined {
  try {
    return parseReference(name).repository;
  } catch {
    return undefined;
  }
}

const requests = ['ann\r\nX-Evil: 1', 'ann\n\nGET /evil HTTP/1.1'];
const smuggled = [...requests, 'ann\u0000', '\u001b[2Jann', 'ann\u2028\u202e'];

t.test('control characters in user names and passwords do not reach headers or a terminal', async (t) => {
  const ca = await createCa();
  for (const [index, text] of smuggled.entries()) {
    const user = { username: text, password: text };
    const users = { [text]: text };
    const registry = await startRegistry(t, { tls: ca, auth: { kind: 'basic', users } });
    registry.push('team/app', 'v1', multiArch(['linux/amd64']));
    const root = directory(t);
    write(root, { 'plugins.json': pluginConfig([registry.host]), 'ca.pem': ca.cert });
    const plugins = directory(t);
    writePlugin(plugins, { [registry.host]: user, [`\u001b[31m${registry.host}`]: user });
    const { code, out, err } = await run([
      'inspect',
      '--verbose',
      `--kubelet-config-config=${join(root, 'plugins.json')}`,
      `--kubelet-config-bin-dir=${plugins}`,
      `--ca-files=${join(root, 'ca.pem')}`,
      `${registry.host}/team/app:v1`,
    ]);
    // In Basic authentication, a user name ends at its first colon.
    t.equal(code, user.username.includes(':') ? 1 : 0, `${index}: ${out}${err}`);
    t.notOk(registry.requests.some(({ headers, path }) => 'x-evil' in headers || path === '/evil'));
    // oxlint-disable-next-line no-control-regex
    t.notMatch(out + err, /[\u0000-\u0009\u000b-\u001f\u2028\u202e]|X-Evil/);
  }
});
