/** Registry clients: skopeo and crane push images and read them back, for comparison with our `inspect`. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { debianProgram } from '../programs/debian.ts';
import { craneProgram } from '../programs/helm.ts';

const execute = promisify(execFile);

interface Platform {
  readonly os?: string;
  readonly architecture?: string;
  readonly variant?: string;
}

interface Manifest {
  readonly mediaType: string;
  readonly config?: { readonly mediaType: string };
  readonly manifests?: readonly {
    readonly mediaType: string;
    readonly digest: string;
    readonly platform?: Platform;
    readonly annotations?: Readonly<Record<string, string>>;
  }[];
}

/** Pushing a few kilobytes over loopback takes well under a second; images of programs take seconds. */
const timeoutMs = 120_000;

/** Copies all platforms by skopeo. @param from `oci:LAYOUT:TAG` @param flags for the login */
export async function copyImage(
  from: string,
  to: string,
  flags: readonly string[],
  env = process.env,
): Promise<void> {
  const words = ['--insecure-policy', 'copy', '--quiet', '--all', ...flags, from, `docker://${to}`];
  await execute(debianProgram('skopeo'), words, { env, timeout: timeoutMs });
}

export type Clients = ReturnType<typeof createClients>;

export function createClients(options: {
  readonly directory: string;
  readonly caFile: string;
  readonly host: string;
  readonly login: { readonly username: string; readonly password: string };
}) {
  const { directory, caFile, host } = options;
  mkdirSync(directory, { recursive: true });
  const login = join(directory, 'config.json');
  const auth = Buffer.from(`${options.login.username}:${options.login.password}`).toString('base64');
  writeFileSync(login, JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  const env = { ...process.env, SSL_CERT_FILE: caFile, DOCKER_CONFIG: directory };

  async function crane(...args: readonly string[]): Promise<string> {
    return (await execute(craneProgram(), args, { env, timeout: timeoutMs })).stdout;
  }

  async function manifestOf(image: string): Promise<Manifest> {
    return JSON.parse(await crane('manifest', image)) as Manifest;
  }

  async function platforms(image: string, manifest: Manifest): Promise<Platform[]> {
    if (manifest.manifests === undefined) {
      const isImage = /\.image(\.config)?\.v1\+json$/.test(manifest.config?.mediaType ?? '');
      return isImage ? [JSON.parse(await crane('config', image)) as Platform] : [];
    }
    const lists = await Promise.all(
      manifest.manifests.map(async (child): Promise<Platform[]> => {
        if (child.annotations?.['vnd.docker.reference.type'] !== undefined) return [];
        if (child.platform !== undefined) return [child.platform];
        const inner = `${image.replace(/(@[^/]*|:[^/:]*)$/, '')}@${child.digest}`;
        return platforms(inner, await manifestOf(inner));
      }),
    );
    return lists.flat();
  }

  return {
    login,
    /** Pushes an OCI layout: crane keeps nested indexes and artifacts, skopeo converts to a format. */
    push: async (layout: string, image: string, how: 'crane' | 'oci' | 'v2s2'): Promise<void> => {
      if (how === 'crane') await crane('push', layout, image);
      else await copyImage(`oci:${layout}:1`, image, ['--authfile', login, '--format', how], env);
    },
    /** What crane reads back; platforms as `written` gives them. */
    readBack: async (image: string) => {
      const manifest = await manifestOf(image);
      const found = await platforms(image, manifest);
      const digest = (await crane('digest', image)).trim();
      return { digest, mediaType: manifest.mediaType, platforms: [...new Set(texts(found))] };
    },
  };
}

/** An htpasswd line with bcrypt, the only kind these registries take; made by the C library through perl. */
export function htpasswd(username: string, password: string): string {
  const script = 'print crypt($ARGV[0], q($2y$05$) . q(abcdefghijklmnopqrstuu))';
  return `${username}:${execFileSync('perl', ['-e', script, password], { encoding: 'utf8' })}`;
}

interface Answer {
  readonly code: number;
  readonly results: readonly ImageFacts[];
  readonly text: string;
}

/** Runs `archwright inspect`. A cold start takes well under a second. */
export function inspect(args: readonly string[]): Promise<Answer> {
  return new Promise((resolve) => {
    const words = ['cmd/archwright.ts', 'inspect', '--output', 'json', ...args];
    const child = execFile(process.execPath, words, { timeout: 60_000 }, (_error, stdout, stderr) => {
      const results = stdout === '' ? [] : (JSON.parse(stdout) as { results: ImageFacts[] }).results;
      resolve({ code: child.exitCode ?? -1, results, text: stdout + stderr });
    });
  });
}

/** Platforms as `os/architecture[/variant]`, sorted. */
export const written = (facts: ImageFacts | undefined): string[] => texts(facts?.platforms ?? []);

function texts(platforms: readonly Platform[]): string[] {
  return platforms
    .map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'))
    .sort();
}
