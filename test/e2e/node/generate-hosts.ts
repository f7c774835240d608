/** Generated host directories: valid and invalid contents of `certs.d`. */
import { join } from 'node:path';
import type { NodeFiles } from './case.ts';
import type { Random } from '../random.ts';
import { knownUser } from './registry.ts';
import type { PlaceName, Places } from './world.ts';

/** Certificates of the node that hosts.toml files name by absolute path. */
export const certificatePaths = {
  ca: '/etc/pki/test/private-ca.crt',
  publicCa: '/etc/pki/test/public-ca.crt',
  client: '/etc/pki/test/client.crt',
  key: '/etc/pki/test/client.key',
  pair: '/etc/pki/test/client.pem',
  missing: '/etc/pki/test/missing.crt',
} as const;

export function certificateFiles(world: {
  readonly publicCa: string;
  readonly privateCa: string;
  readonly client: { readonly cert: string; readonly key: string };
}): NodeFiles {
  return {
    '/etc/ssl/certs/ca-certificates.crt': world.publicCa,
    [certificatePaths.ca]: world.privateCa,
    [certificatePaths.publicCa]: world.publicCa,
    [certificatePaths.client]: world.client.cert,
    [certificatePaths.key]: world.client.key,
    [certificatePaths.pair]: `${world.client.cert}\n${world.client.key}\n`,
  };
}

interface HostsContext {
  readonly random: Random;
  readonly places: Places;
  readonly certificates: NodeFiles;
  readonly namespace: string;
}

export function generateHosts(context: HostsContext, roots: readonly string[]): NodeFiles {
  const { random } = context;
  const files: Record<string, string> = {};
  for (const root of roots) {
    for (const name of directoryNames(context)) {
      const directory = join(root, name);
      Object.assign(
        files,
        random.weighted<() => NodeFiles>([
          [14, () => ({ [join(directory, 'hosts.toml')]: hostsToml(context) })],
          [
            1,
            () => ({
              [join(directory, 'hosts.toml')]: hostsToml(context),
              ...certificateDirectory(context, directory),
            }),
          ],
          [2, () => certificateDirectory(context, directory)],
          [1, () => ({ [join(directory, 'hosts.toml')]: '', ...certificateDirectory(context, directory) })],
          [1, () => ({ [join(directory, 'README')]: 'nothing here\n' })],
        ])(),
      );
    }
  }
  return files;
}

function directoryNames({ random, namespace }: HostsContext): string[] {
  const port = /^(.*):(\d+)$/.exec(namespace);
  const names = random.chance(0.7) ? [random.chance(0.3) && port ? `${port[1]}_${port[2]}_` : namespace] : [];
  if (port && random.chance(0.1)) names.push(`${port[1]}_${port[2]}_`);
  if (port && random.chance(0.1)) names.push(port[1] ?? namespace);
  if (random.chance(0.3)) names.push('_default');
  return [...new Set(names)];
}

function certificateDirectory({ random, certificates }: HostsContext, directory: string): NodeFiles {
  const text = (path: string): string => certificates[path] ?? '';
  const files: Record<string, string> = {};
  if (random.chance(0.8))
    files[random.pick(['ca.crt', 'other.crt', 'client.crt'])] = text(certificatePaths.ca);
  if (random.chance(0.5)) {
    files['client.cert'] = text(random.chance(0.3) ? certificatePaths.pair : certificatePaths.client);
    if (random.chance(0.8)) files['client.key'] = text(certificatePaths.key);
  }
  if (random.chance(0.1)) files['broken.crt'] = 'not a certificate\n';
  if (random.chance(0.1)) files['ignored.pem'] = 'not a certificate\n';
  return Object.fromEntries(Object.entries(files).map(([name, content]) => [join(directory, name), content]));
}

function hostsToml(context: HostsContext): string {
  const { random, places, namespace } = context;
  const lines: string[] = [];
  const server = random.weighted<string | undefined>([
    [4, undefined],
    [2, `https://${namespace === 'docker.io' ? places.hub : namespace}`],
    [2, hostUrl(context, anyPlace(random))],
    [0.3, ''],
  ]);
  if (server !== undefined) lines.push(`server = ${quoted(server)}`);
  if (random.chance(0.3)) lines.push(...hostKeys(context, undefined, ''));
  const count = random.weighted<number>([
    [1, 0],
    [4, 1],
    [4, 2],
    [2, 3],
  ]);
  const names = random.some(mirrorPlaces, count);
  for (const name of names) {
    const header = `host.${quoted(hostUrl(context, name))}`;
    lines.push('', `[${header}]`, ...hostKeys(context, name, header));
  }
  if (random.chance(0.05)) {
    lines.push(
      '',
      random.pick([
        `[host.${quoted(hostUrl(context, 'mirror'))}]\ncapabilities = ["pull", "fly"]`,
        `[host.${quoted(hostUrl(context, 'mirror'))}]\nskip_verify = "yes"`,
        '[host',
        'server = 5',
        `[host.${quoted(hostUrl(context, 'mirror'))}]\nca = ["${certificatePaths.missing}"]`,
        `[host.${quoted(hostUrl(context, 'mirror'))}]\ndial_timeout = "soon"`,
      ]),
    );
  }
  return `${lines.join('\n')}\n`;
}

const mirrorPlaces: readonly PlaceName[] = [
  'secure',
  'secure2',
  'private',
  'mutual',
  'plain',
  'plain2',
  'localhost',
  'gone',
  'mirror',
  'mirrorPrivate',
  'originPort',
  'plainName',
  'missing',
  'hub',
];

function anyPlace(random: Random): PlaceName {
  return random.pick(mirrorPlaces);
}

const plainPlaces: ReadonlySet<PlaceName> = new Set<PlaceName>(['plain', 'plain2', 'localhost', 'plainName']);
const privatePlaces: ReadonlySet<PlaceName> = new Set<PlaceName>(['private', 'mutual', 'mirrorPrivate']);

function hostUrl({ random, places }: HostsContext, name: PlaceName): string {
  const plain = plainPlaces.has(name);
  const scheme = random.chance(0.85)
    ? plain
      ? 'http://'
      : 'https://'
    : random.pick(['http://', 'https://', '']);
  const path = random.weighted([
    [16, ''],
    [1, '/'],
    [1, '/v2'],
    [1, '/v2/'],
    [2, '/proxy'],
    [1, '/proxy/v2'],
    [1, '/a//b/'],
  ]);
  return `${scheme}${places[name]}${path}`;
}

/** Keys of one table. `name` is undefined for the root. */
function hostKeys({ random }: HostsContext, name: PlaceName | undefined, header: string): string[] {
  const lines: string[] = [];
  const key = (text: string): number => lines.push(text);
  if (random.chance(0.6)) {
    const capabilities = random.weighted([
      [6, ['pull', 'resolve']],
      [2, ['pull']],
      [1, ['resolve']],
      [1, ['push']],
      [1, []],
      [1, ['Pull', 'RESOLVE']],
      [1, ['pull', 'resolve', 'push']],
      [0.5, ['pull', 'resolve', 'referrers']],
    ]);
    key(`capabilities = [${capabilities.map(quoted).join(', ')}]`);
  }
  const isPrivate = name !== undefined && privatePlaces.has(name);
  if (random.chance(isPrivate ? 0.75 : 0.05)) {
    const { ca, publicCa } = certificatePaths;
    key(`ca = ${random.pick([quoted(ca), `[${quoted(ca)}]`, `[${quoted(publicCa)}, ${quoted(ca)}]`])}`);
  } else if (random.chance(isPrivate ? 0.7 : 0.1)) {
    key(`skip_verify = ${random.chance(0.8)}`);
  }
  if (random.chance(name === 'mutual' ? 0.85 : 0.03)) {
    const { client, key: secretKey, pair } = certificatePaths;
    key(
      `client = ${random.pick([
        `[[${quoted(client)}, ${quoted(secretKey)}]]`,
        quoted(pair),
        `[${quoted(pair)}]`,
        quoted(client),
      ])}`,
    );
  }
  if (random.chance(0.12)) key(`override_path = ${random.chance(0.8)}`);
  if (random.chance(0.05)) key('dial_timeout = "5s"');
  if (random.chance(0.05)) key('unknown_key = 1');
  if (random.chance(0.2)) {
    const [field, value] = random.weighted([
      [1, ['x-test', '"one"']],
      [1, ['X-Test', '["one"]']],
      [1, ['X-TEST', '["one", "two"]']],
      [1, ['Authorization', quoted(knownBasic)]],
    ]);
    if (header !== '' && random.chance(0.7)) lines.push(`[${header}.header]`, `${field} = ${value}`);
    else key(`header = { ${field} = ${value} }`);
  }
  return lines;
}

const knownBasic = `Basic ${Buffer.from(`${knownUser.username}:${knownUser.password}`).toString('base64')}`;

export const quoted = (text: string): string => JSON.stringify(text);
