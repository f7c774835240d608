/** Nodes with plugins that are real programs, in a directory of each test. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import {
  createCredentialProviderSource,
  type CredentialProviderSourceOptions,
} from '../../../daemon/kubelet/source.ts';
import { captureLog } from '../../support/captured.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';

export const execV1 = 'credentialprovider.kubelet.k8s.io/v1';

export function writePlugin(path: string, body: string, interpreter = process.execPath): void {
  writeFileSync(path, body.startsWith('#!') ? body : `#!${interpreter}\n${body}\n`);
  chmodSync(path, 0o755);
}

export const sh = (body: string): string => `#!/bin/sh\n${body}\n`;

export const marking = (file: string): string =>
  `process.getBuiltinModule('node:fs').appendFileSync(${JSON.stringify(file)}, '.');`;

export const waitingFor = (file: string): string =>
  `while (!process.getBuiltinModule('node:fs').existsSync(${JSON.stringify(file)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);`;

/** Attributes of a provider that needs tokens. */
export const tokenAttributes = {
  serviceAccountTokenAudience: 'reg.example',
  cacheType: 'Token',
  requireServiceAccount: true,
};

export function answering(response: object, before = ''): string {
  const text = JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion: execV1,
    cacheKeyType: 'Image',
    ...response,
  });
  return `${before}\nprocess.stdin.resume();\nprocess.stdin.on('end', () => process.stdout.write(${JSON.stringify(text)}));`;
}

/**
 * The body of a plugin that responds with the annotation `team/robot` as the user, and `got` and the token as
 * the password.
 * @param key of its credential
 */
export function echoing(key: string): string {
  return `let text = '';
process.stdin.on('data', (chunk) => (text += chunk));
process.stdin.on('end', () => {
  const { serviceAccountToken, serviceAccountAnnotations } = JSON.parse(text);
  process.stdout.write(JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion: ${JSON.stringify(execV1)},
    cacheKeyType: 'Registry',
    auth: { [${JSON.stringify(key)}]: {
      username: serviceAccountAnnotations['team/robot'], password: 'got ' + serviceAccountToken } },
  }));
});`;
}

export const creds = (key: string, username: string) => ({ auth: { [key]: { username, password: 'pass' } } });

interface ProviderFields {
  readonly name: string;
  readonly matchImages?: readonly string[];
  readonly defaultCacheDuration?: string;
  readonly [field: string]: unknown;
}

/** The text of a configuration in JSON. */
export function configText(...providers: readonly ProviderFields[]): string {
  return JSON.stringify({
    kind: 'CredentialProviderConfig',
    apiVersion: 'kubelet.config.k8s.io/v1',
    providers: providers.map((provider) => ({
      matchImages: ['registry.example'],
      defaultCacheDuration: '10m',
      apiVersion: execV1,
      ...provider,
    })),
  });
}

/**
 * A directory with `config.json` and an empty `bin`. Not below the repository: plugins run only if other
 * users can write no directory above them, and the group may be able to write a checkout.
 */
export function nodeDir(t: Test, config: string) {
  const dir = mkdtempSync(join(tmpdir(), 'archwright-plugins-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'config.json'), config);
  const bin = join(dir, 'bin');
  mkdirSync(bin, { mode: 0o755 });
  return { bin, config: join(dir, 'config.json') };
}

/** A node with plugins and its open source. */
export async function openNode(
  t: Test,
  providers: readonly ProviderFields[],
  plugins: Readonly<Record<string, string>> = {},
  options: Partial<CredentialProviderSourceOptions> = {},
) {
  const node = nodeDir(t, configText(...providers));
  for (const [name, body] of Object.entries(plugins)) writePlugin(join(node.bin, name), body);
  return { ...node, ...(await openSource(t, { config: node.config, binDir: node.bin, ...options })) };
}

export async function openSource(
  t: Test,
  options: Partial<CredentialProviderSourceOptions> & { readonly config: string; readonly binDir: string },
) {
  const { log, lines } = captureLog();
  const source = await createCredentialProviderSource({ hostRoot: '/', log, ...manualRefresh, ...options });
  t.teardown(() => source.close());
  return {
    source,
    lines,
    problems: () => source.problems().map(({ origin, message }) => `${origin}: ${message}`),
    /** Why plugins have no usable credential for a repository. */
    reasons: async (repository: string) => {
      const reasons: string[] = [];
      await source.lookup(repository, undefined, undefined, ({ origin, message }) =>
        reasons.push(`${origin}: ${message}`),
      );
      return reasons;
    },
    found: async (repository: string) => {
      const matched = await source.lookup(repository);
      return matched.map(
        ({ credential, origin, key }) =>
          `${credential.username}:${reveal(credential.password)} (${origin}, ${key})`,
      );
    },
  };
}

/** Whether a process exists. A zombie does not count. */
export function isAlive(pid: number, stat: (pid: number) => string): boolean {
  try {
    return !/\) [ZX] /.test(stat(pid));
  } catch {
    return false;
  }
}
