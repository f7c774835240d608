/** Real registries as children on loopback: Debian's docker-registry (2.8) and distribution v3, each with a configuration of its own. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PemPair } from '../../support/certificates.ts';

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

export interface RegistryOptions {
  readonly program: string;
  readonly directory: string;
  readonly tls: PemPair;
  readonly ca: string;
  /** Only clients with a certificate of this authority are answered; this one asks whether the registry is there. */
  readonly clients?: { readonly ca: string; readonly probe: PemPair };
  readonly auth: Auth;
  /** Pull-through cache of this registry. */
  readonly upstream?: { readonly url: string; readonly username?: string; readonly password?: string };
}

export interface RunningRegistry {
  /** `127.0.0.1:port` */
  readonly host: string;
  stop(): Promise<void>;
}

/** A registry is ready within a second; a loaded machine gets more. */
const startTimeoutMs = 20_000;
/** Registries end at once on SIGTERM; what does not is killed. */
const stopTimeoutMs = 5_000;

export async function startRegistry(options: RegistryOptions): Promise<RunningRegistry> {
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
    storage: { filesystem: { rootdirectory: join(directory, 'data') }, delete: { enabled: true } },
    http: {
      addr: `127.0.0.1:${port}`,
      secret: 'only-for-this-test',
      tls: {
        certificate: file('tls.crt', options.tls.cert),
        key: file('tls.key', options.tls.key),
        ...(options.clients && { clientcas: [file('clients.crt', options.clients.ca)] }),
      },
    },
    ...authentication(options.auth, file),
    ...(options.upstream === undefined
      ? {}
      : {
          proxy: {
            remoteurl: options.upstream.url,
            ...(options.upstream.username === undefined
              ? {}
              : { username: options.upstream.username, password: options.upstream.password }),
          },
        }),
  };
  const path = file('config.yml', JSON.stringify(config));
  const child = spawn(options.program, ['serve', path], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, SSL_CERT_FILE: file('ca.crt', options.ca), OTEL_TRACES_EXPORTER: 'none' },
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4096);
  });
  const stop = (): Promise<void> => end(child);
  try {
    await answering(port, { ca: options.ca, ...options.clients?.probe }, child, () => said);
  } catch (error) {
    await stop();
    throw error;
  }
  return { host: `127.0.0.1:${port}`, stop };
}

function authentication(auth: Auth, file: (name: string, text: string) => string): object {
  if (auth.kind === 'htpasswd') {
    return { auth: { htpasswd: { realm: 'test', path: file('htpasswd', `${auth.line}\n`) } } };
  }
  if (auth.kind === 'token') {
    const rootcertbundle = file('signer.crt', auth.signer.cert);
    return {
      auth: { token: { realm: auth.realm, service: auth.service, issuer: auth.issuer, rootcertbundle } },
    };
  }
  return {};
}

/** A port that was free a moment ago: these programs cannot be given port 0 and asked for what they got. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

async function answering(port: number, tls: Tls, child: ChildProcess, said: () => string): Promise<void> {
  const until = performance.now() + startTimeoutMs;
  while (performance.now() < until) {
    if (child.exitCode !== null) break;
    if (await answers(port, tls)) return;
    await delay(50);
  }
  throw new Error(`the registry did not start: ${said()}`);
}

/** For a client: whom it trusts, and who it is. */
type Tls = { readonly ca: string } & Partial<PemPair>;

function answers(port: number, tls: Tls): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path: '/v2/', ...tls, timeout: 2_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200 || answer.statusCode === 401);
    });
    request.on('error', () => resolve(false));
    request.on('timeout', () => request.destroy());
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await ended;
  clearTimeout(timer);
}
