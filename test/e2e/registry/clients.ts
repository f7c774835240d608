/** Real clients: skopeo and crane push images and read them back. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export interface Clients {
  /** A docker configuration file with the credentials, as `docker login` writes it. */
  readonly login: string;
  /** Pushes an OCI layout by skopeo, all platforms; `v2s2` turns everything into Docker's media types. */
  skopeo(layout: string, image: string, format?: 'oci' | 'v2s2'): Promise<void>;
  /** Pushes an OCI layout by crane, which takes nested indexes and artifacts as they are. */
  crane(layout: string, image: string): Promise<void>;
  /** What crane reads back: digest, media type, and platforms as `os/architecture[/variant]`, sorted. */
  said(image: string): Promise<Said>;
}

export interface Said {
  readonly digest: string;
  readonly mediaType: string;
  readonly platforms: readonly string[];
}

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

/** Pushing a few kilobytes over loopback takes well under a second. */
const timeoutMs = 60_000;

export function createClients(options: {
  readonly skopeo: string;
  readonly crane: string;
  readonly directory: string;
  readonly caFile: string;
  /** Host → user and password. */
  readonly logins: Readonly<Record<string, { readonly username: string; readonly password: string }>>;
}): Clients {
  mkdirSync(options.directory, { recursive: true });
  const login = join(options.directory, 'config.json');
  const auths: Record<string, { readonly auth: string }> = {};
  for (const [host, { username, password }] of Object.entries(options.logins)) {
    auths[host] = { auth: Buffer.from(`${username}:${password}`).toString('base64') };
  }
  writeFileSync(login, JSON.stringify({ auths }), { mode: 0o600 });
  const env = { ...process.env, SSL_CERT_FILE: options.caFile, DOCKER_CONFIG: options.directory };

  async function run(program: string, args: readonly string[]): Promise<string> {
    const { stdout } = await execute(program, args, { env, timeout: timeoutMs, maxBuffer: 16 * 1024 * 1024 });
    return stdout;
  }

  async function platforms(image: string, manifest: Manifest): Promise<Platform[]> {
    if (manifest.manifests === undefined) {
      const isImage = /\.image(\.config)?\.v1\+json$/.test(manifest.config?.mediaType ?? '');
      return isImage ? [JSON.parse(await run(options.crane, ['config', image])) as Platform] : [];
    }
    const lists = await Promise.all(
      manifest.manifests.map(async (child): Promise<Platform[]> => {
        if (child.annotations?.['vnd.docker.reference.type'] !== undefined) return [];
        if (child.platform !== undefined) return [child.platform];
        const repository = image.replace(/(@[^/]*|:[^/:]*)$/, '');
        const inner = `${repository}@${child.digest}`;
        return platforms(inner, JSON.parse(await run(options.crane, ['manifest', inner])) as Manifest);
      }),
    );
    return lists.flat();
  }

  return {
    login,
    skopeo: async (layout, image, format = 'oci') => {
      const to = ['--format', format, `oci:${layout}:1`, `docker://${image}`];
      await run(options.skopeo, [
        '--insecure-policy',
        'copy',
        '--quiet',
        '--all',
        '--authfile',
        login,
        ...to,
      ]);
    },
    crane: async (layout, image) => {
      await run(options.crane, ['push', layout, image]);
    },
    said: async (image) => {
      const manifest = JSON.parse(await run(options.crane, ['manifest', image])) as Manifest;
      const found = (await platforms(image, manifest)).map((platform) =>
        [platform.os, platform.architecture, platform.variant].filter(Boolean).join('/'),
      );
      const digest = (await run(options.crane, ['digest', image])).trim();
      return { digest, mediaType: manifest.mediaType, platforms: [...new Set(found)].sort() };
    },
  };
}

/** A line for htpasswd with bcrypt, the only kind these registries take; made by the C library through perl. */
export function htpasswd(username: string, password: string): string {
  const script = 'print crypt($ARGV[0], q($2y$05$) . q(abcdefghijklmnopqrstuu))';
  return `${username}:${execFileSync('perl', ['-e', script, password], { encoding: 'utf8' })}`;
}
