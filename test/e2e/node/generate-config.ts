/** Generated containerd configurations: format versions, host directories, deprecated tables, imports. */
import type { NodeFiles } from './case.ts';
import type { ContainerdVersion } from '../programs/containerd.ts';
import { certificatePaths, quoted } from './generate-hosts.ts';
import type { Random } from '../random.ts';
import { knownUser } from './registry.ts';
import type { Places } from './world.ts';

export interface GeneratedConfig {
  readonly files: NodeFiles;
  readonly roots: readonly string[];
}

const certsD = '/etc/containerd/certs.d';
const dockerCertsD = '/etc/docker/certs.d';

const newestFormat: Readonly<Record<ContainerdVersion, number>> = { '1.6': 2, '1.7': 2, '2.1': 3, '2.4': 4 };

type Table = readonly [name: string, text: string];

export function generateConfig(random: Random, places: Places, minor: ContainerdVersion): GeneratedConfig {
  const format = generateFormat(random, minor);
  const style = random.weighted<'none' | 'one' | 'two' | 'legacy'>([
    [2, 'none'],
    [8, 'one'],
    [3, 'two'],
    [4, 'legacy'],
  ]);
  const both = random.chance(0.7) ? [certsD, dockerCertsD] : [dockerCertsD, certsD];
  const roots = { none: [], one: [certsD], two: both, legacy: [] }[style];
  const tables: Table[] = [];
  const keys = random.chance(0.2) ? [generateKey(random, minor)] : [];
  if (keys.length > 0) tables.push(['', keys.join('\n')]);
  if (roots.length > 0) tables.push(['.registry', `config_path = ${quoted(roots.join(':'))}`]);
  if (style === 'legacy') tables.push(...legacyTables(random, places));
  if (random.chance(style === 'none' ? 0.3 : 0.12)) tables.push(credentialTable(random, places));
  if (random.chance(0.1)) tables.push(['.registry.headers', 'X-Everywhere = ["yes"]']);
  return {
    files: layOut(random, format, tables, generateKey(random, minor)),
    // Defaults without config_path, since 2.2.
    roots: style === 'none' && minor === '2.4' ? [certsD, dockerCertsD] : roots,
  };
}

function generateFormat(random: Random, minor: ContainerdVersion): number {
  const formats: readonly (readonly [weight: number, format: number])[] = [
    [1, 0],
    [5, 2],
    [5, 3],
    [2, 4],
  ];
  return random.weighted(formats.filter(([, format]) => format <= newestFormat[minor]));
}

/** A key unrelated to registries: in 2.1 it selects the pull code, in 1.x it shows the merge of files. */
function generateKey(random: Random, minor: ContainerdVersion): string {
  return random.pick([
    ...(minor.startsWith('2.') ? ['use_local_image_pull = true', 'use_local_image_pull = false'] : []),
    'discard_unpacked_layers = true',
    'max_concurrent_downloads = 5',
    'max_concurrent_downloads = 3',
  ]);
}

/** One file, or one that imports another, which may override it. */
function layOut(random: Random, format: number, tables: readonly Table[], key: string): NodeFiles {
  const head = format === 0 ? '' : `version = ${format}\n`;
  const plugin = `plugins.${quoted(pluginId(random, format))}`;
  const written = (some: readonly Table[]): string =>
    some.map(([name, text]) => `[${plugin}${name}]\n${text}\n`).join('\n');
  const main = '/etc/containerd/config.toml';
  const [path, pattern] = random.pick([
    ['/etc/containerd/conf.d/registry.toml', '/etc/containerd/conf.d/*.toml'],
    ['/etc/containerd/conf.d/registry.toml', 'conf.d/*.toml'],
    ['/etc/containerd/conf.d/registry.toml', 'conf.d/registry.toml'],
    ['/etc/containerd/conf.d/registry.toml', '/etc/containerd/conf.d/registry.toml'],
  ] as const);
  const imports = `${head}imports = [${quoted(pattern)}]\n`;
  return random.weighted<() => NodeFiles>([
    [8, () => ({ [main]: `${head}${written(tables)}` })],
    [1, () => ({ [main]: imports, [path]: `${head}${written(tables)}` })],
    [1, () => ({ [main]: `${imports}${written(tables)}`, [path]: `${head}${written([['', key]])}` })],
    [
      0.5,
      () => ({
        [main]: `${imports}${written(tables)}`,
        [path]: `${head}${written([['.registry', `config_path = ${quoted(random.pick([certsD, '']))}`]])}`,
      }),
    ],
  ])();
}

/** Sometimes the plugin name of another format. */
function pluginId(random: Random, format: number): string {
  const right = format === 0 ? 0 : format === 2 ? 1 : 2;
  const ids = ['cri', 'io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.images'] as const;
  // Since version 2 a name has to have the full form.
  const other = random.chance(0.08) ? (right === 2 ? 1 : 2) : right;
  return ids[other];
}

/** Deprecated `mirrors`, `configs.tls` and `auths`. */
function legacyTables(random: Random, places: Places): Table[] {
  const tables: Table[] = [];
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
    tables.push([`.registry.mirrors.${quoted(host)}`, `endpoint = [${endpoints.join(', ')}]`]);
  }
  if (random.chance(0.5)) {
    const text = random.pick([`ca_file = ${quoted(certificatePaths.ca)}`, 'insecure_skip_verify = true']);
    tables.push([`.registry.configs.${quoted(places.private)}.tls`, text]);
  }
  return tables;
}

/** `configs.auth` and `auths`: credentials in containerd's own configuration. */
function credentialTable(random: Random, places: Places): Table {
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
    ? [`.registry.configs.${quoted(host)}.auth`, text]
    : [`.registry.auths.${quoted(`https://${host}`)}`, text];
}
