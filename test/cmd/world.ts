/** For tests of `inspect` and `explain`: registries, files, and a home without logins. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { fileURLToPath } from 'node:url';
import type { resultOf } from '../../cmd/explain/describe.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { compileCache } from '../support/compile-cache.ts';
import { kubeconfigOf } from '../support/kubeconfig.ts';
import { startKubeStore, type KubeStoreOptions } from '../support/kube-store.ts';
import { startRegistry } from '../support/registry/client.ts';
import { multiArch } from '../support/registry/content.ts';
import type { TestRegistryOptions } from '../support/registry/server.ts';
import { writeFiles } from '../support/write-files.ts';

/** Without a docker login, kubeconfig or cluster of the user who runs the tests. */
const home = mkdtempSync(join(tmpdir(), 'archwright-home-'));
process.env['HOME'] = home;
delete process.env['KUBECONFIG'];
process.on('exit', () => rmSync(home, { recursive: true, force: true }));

export const program = fileURLToPath(new URL('../../cmd/archwright.ts', import.meta.url));

export const childEnv = { PATH: process.env['PATH'] ?? '', HOME: home, ...compileCache };

export { startRegistry as registry } from '../support/registry/client.ts';
export { writeFiles as write } from '../support/write-files.ts';

/** A registry with `team/app:v1` for amd64 and arm64. */
export async function registryWithApp(t: Test, options: TestRegistryOptions = {}) {
  const server = await startRegistry(t, options);
  server.push('team/app', 'v1', multiArch(['linux/amd64', 'linux/arm64']));
  return { server, image: `${server.host}/team/app:v1` };
}

/** A registry with `team/app:v1` that only `ann` may read. */
export const privateApp = (t: Test) =>
  registryWithApp(t, { auth: { kind: 'basic', users: { ann: 'password-of-ann' } } });

export function directory(t: Test): string {
  const made = mkdtempSync(join(tmpdir(), 'archwright-test-'));
  t.teardown(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export function files<Name extends string>(
  t: Test,
  content: Readonly<Record<Name, string>>,
): Readonly<Record<Name, string>> & { readonly directory: string } {
  const root = directory(t);
  writeFiles(root, content);
  const paths = Object.fromEntries(Object.keys(content).map((name) => [name, join(root, name)]));
  return { ...(paths as Record<Name, string>), directory: root };
}

/** A docker `config.json` with one login. */
export function dockerConfig(host: string, username: string, password: string): string {
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  return JSON.stringify({ auths: { [host]: { auth } } });
}

export function pullSecret(
  config: string,
  metadata: Readonly<Record<string, string>> = { name: 'regcred' },
): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  });
}

/** A kubeconfig for an API server of the test. */
export function kubeconfig(server: string, namespace = 'shop'): string {
  const cluster = { server, 'insecure-skip-tls-verify': true };
  return kubeconfigOf(cluster, { token: 'token-of-the-user' }, namespace);
}

/** An API server with a store, and the path of a kubeconfig for it. */
export async function storeWithConfig(t: Test, options: KubeStoreOptions = {}) {
  const store = await startKubeStore({ isPlain: true, ...options });
  t.teardown(() => store.close());
  return { store, config: files(t, { config: kubeconfig(store.access.server) }).config };
}

/** The results in an output of `inspect --output json`. */
export function resultsIn(out: string): readonly ImageFacts[] {
  return (JSON.parse(out) as { results: ImageFacts[] }).results;
}

export type Explained = Extract<ReturnType<typeof resultOf>, { rules: object }>;

/** The program as a process. */
export function child(
  t: Test,
  args: readonly string[],
  stdin?: string,
  env: Readonly<Record<string, string>> = {},
) {
  const process_ = spawn(process.execPath, [program, ...args], { env: { ...childEnv, ...env } });
  t.teardown(() => process_.kill('SIGKILL'));
  let out = '';
  let err = '';
  process_.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  process_.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  if (stdin !== undefined) process_.stdin.end(stdin);
  return {
    ended: once(process_, 'close').then(([code]) => ({ code: code as number | null, out, err })),
    kill: (signal: NodeJS.Signals) => void process_.kill(signal),
  };
}
