/** The kubelet's credential provider plugins, from the settings to the registry. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { multiArch } from '../support/registry/content.ts';
import { run } from './run.ts';
import { registry, resultsIn } from './world.ts';

const app = multiArch(['linux/amd64', 'linux/arm64']);

/** A node's directories with one plugin, and the flags that name them. */
function node(t: Test, host: string, script: string): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'archwright-node-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const config = join(dir, 'config.yaml');
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'plugin'), `#!/bin/sh\n${script}\n`);
  for (const path of [bin, join(bin, 'plugin')]) chmodSync(path, 0o755);
  writeFileSync(
    config,
    `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: plugin
  matchImages: ["${host}"]
  defaultCacheDuration: 1h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
`,
  );
  return ['--kubelet-config-config', config, '--kubelet-config-bin-dir', bin];
}

const answer = (host: string, username: string, password: string): string =>
  `cat <<'END'\n${JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    cacheKeyType: 'Registry',
    auth: { [host]: { username, password } },
  })}\nEND`;

t.test('a plugin’s credential is presented, and named', async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'password-of-ann' } } });
  server.push('team/app', 'v1', app);
  const flags = node(t, server.host, answer(server.host, 'ann', 'password-of-ann'));
  const image = `${server.host}/team/app:v1`;
  const json = await run(['inspect', '-o', 'json', ...flags, image]);
  t.equal(json.code, 0, json.err);
  t.match(resultsIn(json.out), [{ credentialSource: 'credential-provider', source: 'registry' }]);
  const verbose = await run(['inspect', '-v', ...flags, image]);
  t.match(verbose.out, `  credential-provider: ${flags[1] ?? ''}\n`);
  t.match(verbose.out, `credential-provider ${server.host} (plugin plugin)`);
  t.notMatch(verbose.out + verbose.err + json.out, /password-of-ann/);
});

t.test('a plugin that fails is told', async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'password-of-ann' } } });
  const flags = node(t, server.host, 'echo "password=password-of-ann was refused" >&2; exit 3');
  const { code, out, err } = await run(['inspect', '-v', ...flags, `${server.host}/team/app:v1`]);
  t.equal(code, 1);
  t.match(out + err, /plugin plugin.*exit status 3: password=\[secret\] was refused/);
  t.notMatch(out + err, /password-of-ann/);
});

t.test('half of the settings is an error', async (t) => {
  const { code, err } = await run(['inspect', '--kubelet-config-bin-dir', '/bin', 'a.example/b']);
  t.equal(code, 2);
  t.match(err, /kubeletConfig\.binDir.*needs kubeletConfig\.config or kubeletConfig\.configDir/);
});
