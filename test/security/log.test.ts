/**
 * Attack: a registry returns credentials in every part of its response, so that they appear in logs or
 * results.
 */
import { join } from 'node:path';
import t from 'tap';
import { run } from '../cmd/run.ts';
import { directory, dockerConfig, pullSecret, write } from '../cmd/world.ts';
import { createCa } from '../support/certificates.ts';
import { startRegistry } from '../support/registry/client.ts';
import { openNode, pluginConfig, writePlugin } from './support.ts';
import { like } from '../support/like.ts';

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
  const answers = [401, 403, 404, 429, 500, 302, 200].map((status) => ({
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
  write(plugins, { plugin: '' });
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
  const output = [...node.lines, JSON.stringify(facts), JSON.stringify(node.inspection.problems())].join(
    '\n',
  );
  t.notMatch(output, /ss\/w|of-docker|of-toml|of-plugin/);
});
