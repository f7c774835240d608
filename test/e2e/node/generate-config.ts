/** Generated configurations of containerd: versions of the format, where hosts are looked for, old tables, imports. */
import type { NodeFiles } from './case.ts';
import type { ContainerdVersion } from './containerd-programs.ts';
import { certificatePaths, quoted } from './generate-hosts.ts';
import type { Random } from './random.ts';
import { knownUser } from './registry.ts';
import type { Places } from './world.ts';

export interface GeneratedConfig {
  readonly files: NodeFiles;
  /** Directories of hosts that the configuration names. */
  readonly roots: readonly string[];
}

const certsD = '/etc/containerd/certs.d';
const dockerCertsD = '/etc/docker/certs.d';

/** Newest format that a version reads. */
const newestFormat: Readonly<Record<ContainerdVersion, number>> = { '1.6': 2, '1.7': 2, '2.1': 3, '2.4': 4 };

export function generateConfig(random: Random, places: Places, minor: ContainerdVersion): GeneratedConfig {
  const format = random.weighted<number | undefined>(
    [[1, undefined], [5, 2] as const, [5, 3] as const, [2, 4] as const].filter(
      ([, version]) => version === undefined || (version ?? 0) <= newestFormat[minor],
    ) as [number, number | undefined][],
  );
  const style = random.weighted<'none' | 'one' | 'two' | 'legacy'>([
    [2, 'none'],
    [8, 'one'],
    [3, 'two'],
    [4, 'legacy'],
  ]);
  const roots = {
    none: [],
    one: [certsD],
    two: random.chance(0.7) ? [certsD, dockerCertsD] : [dockerCertsD, certsD],
    legacy: [],
  }[style];
  const registry = [
    ...(style === 'one' || style === 'two'
      ? [['', `config_path = ${quoted(roots.join(':'))}`] as const]
      : []),
    ...(style === 'legacy' ? legacyTables(random, places) : []),
    ...(random.chance(style === 'none' ? 0.3 : 0.12) ? [credentialTable(random, places)] : []),
  ];
  const images = `plugins.${quoted(pluginId(format))}`;
  const extra =
    minor.startsWith('2.') && format !== undefined && format >= 3 && random.chance(0.2)
      ? [`use_local_image_pull = ${random.chance(0.7)}`]
      : [];
  const tables = [
    ...(extra.length > 0 ? [`[${images}]`, ...extra] : []),
    ...registry.map(([table, text]) => `[${images}.registry${table}]\n${text}`),
  ].join('\n');
  const head = format === undefined ? '' : `version = ${format}\n`;
  // What is looked for without config_path: 2.2 has directories of its own.
  const searched = style === 'none' && minor === '2.4' ? [certsD, dockerCertsD] : roots;
  if (random.chance(0.15)) {
    const drop = random.pick([
      '/etc/containerd/conf.d/*.toml',
      'conf.d/*.toml',
      '/etc/containerd/conf.d/registry.toml',
    ]);
    return {
      roots: searched,
      files: {
        '/etc/containerd/config.toml': `${head}imports = [${quoted(drop)}]\n`,
        '/etc/containerd/conf.d/registry.toml': `${head}${tables}\n`,
      },
    };
  }
  return { roots: searched, files: { '/etc/containerd/config.toml': `${head}${tables}\n` } };
}

function pluginId(format: number | undefined): string {
  if (format === undefined) return 'cri';
  return format === 2 ? 'io.containerd.grpc.v1.cri' : 'io.containerd.cri.v1.images';
}

/** Deprecated `mirrors`, `configs.tls` and `auths`. */
function legacyTables(random: Random, places: Places): (readonly [table: string, text: string])[] {
  const tables: (readonly [string, string])[] = [];
  const hosts = random.some(
    ['docker.io', places.origin, places.originPort, places.secure, places.plain, '*'],
    1 + random.below(3),
  );
  for (const host of hosts) {
    const mirrors = random.some(
      [places.mirror, places.secure2, places.private, places.plain2, places.gone],
      1 + random.below(2),
    );
    const endpoints = mirrors.map((mirror) => {
      const plain = mirror === places.plain2;
      const scheme = random.chance(0.85)
        ? plain
          ? 'http://'
          : 'https://'
        : random.pick(['http://', 'https://', '']);
      return quoted(`${scheme}${mirror}${random.pick(['', '', '', '', '/v2', '/proxy'])}`);
    });
    tables.push([`.mirrors.${quoted(host)}`, `endpoint = [${endpoints.join(', ')}]`]);
  }
  if (random.chance(0.5)) {
    const text = random.pick([`ca_file = ${quoted(certificatePaths.ca)}`, 'insecure_skip_verify = true']);
    tables.push([`.configs.${quoted(places.private)}.tls`, text]);
  }
  return tables;
}

/** `configs.auth` and `auths`: what containerd itself knows of a registry. */
function credentialTable(random: Random, places: Places): readonly [table: string, text: string] {
  const { username, password } = knownUser;
  const host = random.pick([
    places.hub,
    'docker.io',
    places.origin,
    places.secure,
    places.mirror,
    places.originPort,
    places.plain,
  ]);
  const text = random.weighted([
    [4, `username = ${quoted(username)}\npassword = ${quoted(password)}`],
    [2, `auth = ${quoted(Buffer.from(`${username}:${password}`).toString('base64'))}`],
    [1, `username = ${quoted(username)}\npassword = "wrong"`],
    [1, 'identitytoken = "refresh"'],
  ]);
  return random.chance(0.8)
    ? [`.configs.${quoted(host)}.auth`, text]
    : [`.auths.${quoted(`https://${host}`)}`, text];
}
