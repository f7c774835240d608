/** Real registries as child processes on loopback: Debian's docker-registry (2.8) and distribution v3. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { PemPair } from '../../support/certificates.ts';
import { freePort } from '../cluster/control-plane/ports.ts';
import { httpsStatus, ready, startProcess } from '../cluster/control-plane/processes.ts';

export type Auth =
  | { readonly kind: 'none' }
  | { readonly kind: 'htpasswd'; readonly line: string }
  | {
      readonly kind: 'token';
      readonly realm: string;
      readonly service: string;
      readonly issuer: string;
      readonly signer: PemPair;
    };

interface RegistryOptions {
  readonly program: string;
  readonly directory: string;
  /** Its storage. Default: in its directory. */
  readonly data?: string;
  readonly tls: PemPair;
  readonly ca: string;
  readonly auth: Auth;
  /** Of every response. */
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  readonly upstream?: { readonly remoteurl: string; readonly username: string; readonly password: string };
}

/** Registries end at once on SIGTERM. */
const stopTimeoutMs = 5_000;

/** A directory that is removed when its registries have stopped; `t.testdir()` would be removed before. */
export function directoryOf(t: Pick<Test, 'teardown'>): string {
  const directory = mkdtempSync(join(tmpdir(), 'archwright-registry-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** @returns `host`: `127.0.0.1:port` */
export async function startRegistry(options: RegistryOptions) {
  const { directory } = options;
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const file = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const config = {
    version: '0.1',
    log: { level: 'error', accesslog: { disabled: true } },
    storage: {
      filesystem: { rootdirectory: options.data ?? join(directory, 'data') },
      delete: { enabled: true },
    },
    http: {
      addr: `127.0.0.1:${port}`,
      secret: 'only-for-this-test',
      ...(options.headers && { headers: options.headers }),
      tls: {
        certificate: file('tls.crt', options.tls.cert),
        key: file('tls.key', options.tls.key),
      },
    },
    ...authentication(options.auth, file),
    ...(options.upstream && { proxy: options.upstream }),
  };
  const path = file('config.yml', JSON.stringify(config));
  const registry = startProcess({
    name: 'registry',
    program: options.program,
    args: ['serve', path],
    env: {
      PATH: process.env['PATH'] ?? '',
      SSL_CERT_FILE: file('ca.crt', options.ca),
      OTEL_TRACES_EXPORTER: 'none',
    },
    logs: directory,
  });
  const stop = (): Promise<void> => registry.stop(stopTimeoutMs);
  try {
    await ready(registry, async () =>
      [200, 401].includes(await httpsStatus(`https://127.0.0.1:${port}/v2/`, { ca: options.ca })),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { host: `127.0.0.1:${port}`, stop };
}

function authentication(auth: Auth, file: (name: string, text: string) => string): object {
  if (auth.kind === 'none') return {};
  if (auth.kind === 'htpasswd')
    return { auth: { htpasswd: { realm: 'test', path: file('htpasswd', `${auth.line}\n`) } } };
  const { kind: _kind, signer, ...token } = auth;
  return { auth: { token: { ...token, rootcertbundle: file('signer.crt', signer.cert) } } };
}

/** An htpasswd line with bcrypt, the only kind these registries take; made by the C library through perl. */
export function htpasswd(username: string, password: string): string {
  const script = 'print crypt($ARGV[0], q($2y$05$) . q(abcdefghijklmnopqrstuu))';
  return `${username}:${execFileSync('perl', ['-e', script, password], { encoding: 'utf8' })}`;
}
