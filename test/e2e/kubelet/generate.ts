/** Generated setups: random node files and plugins, and random pods that share repositories (for caches). */
import { indexKey } from '../../../src/credentials/keyring/key.ts';
import type { Random } from '../random.ts';
import {
  dockerConfig,
  dockerConfigs,
  entry,
  pluginConfig,
  providersFile,
  response,
  right,
  users,
  wrong,
  type Behavior,
  type CaseImage,
  type Login,
  type PodCase,
  type PullSecret,
  type Provider,
  type Setup,
  type WrittenAs,
} from './setup.ts';

const domains =
  'registry.example registry.example:5000 eu.registry.example a.b.corp.example docker.io tokens.example 127.0.0.1:5001 localhost:5001'.split(
    ' ',
  );

const names = Object.keys(users) as [string, ...string[]];

/** A setup of that many cases. @param label part of all names: setups share nothing */
export function generateSetup(random: Random, label: string, cases: number): Setup {
  // Few domains for each: keys, patterns and images match.
  const own = random.some(domains, 2);
  const teams = [`${label}/red`, `${label}/redder`, `${label}/blue`];
  const keys = own.flatMap((domain) => keysFor(domain, teams));
  const { files, plugins } = random.chance(0.9) ? randomPlugins(random, keys) : { files: {} };
  return {
    name: `generated ${label}`,
    hostRoot: random.pick(['/', '/host']),
    env: random.chance(0.5) ? { REGION: 'xx-1', TWICE: 'of the kubelet' } : {},
    files: { ...files, ...randomDockerConfigs(random, keys) },
    ...(plugins && { plugins }),
    pods: Array.from({ length: cases }, (_, index) =>
      randomPod(random, `${label}-${index}`, own, teams, keys),
    ),
  };
}

/** Keys that match a domain's images, or almost match. */
function keysFor(domain: string, teams: readonly string[]): string[] {
  const parent = domain.replace(/^[^.]+\./, '*.');
  const hub = [
    'https://index.docker.io/v1/',
    'index.docker.io',
    'index.docker.io/v1',
    'registry-1.docker.io',
  ];
  return [
    ...Array.from({ length: 6 }, () => domain),
    `https://${domain}`,
    `https://${domain}/v1/`,
    `http://${domain}/v2/`,
    domain.toUpperCase(),
    parent,
    `${domain}/*`,
    domain.replace(/:\d+$/, ''),
    ...teams.flatMap((team) => [`${domain}/${team}`, `${domain}/${team}/`, `https://${domain}/v1/${team}`]),
    ...(domain === 'docker.io' ? hub : []),
  ];
}

/** `https://gcr.io/v1/team` → `gcr.io/team` */
function bare(key: string): string {
  return key.replace(/^https?:\/\//, '').replace(/\/v[12](\/|$)/, '$1');
}

function randomLogin(random: Random): Login {
  return random.chance(0.4) ? right(random.pick(names)) : wrong(random.pick(names));
}

/** Logins by key. Equal keys have no order within a file, so only one of them is used. */
function randomLogins(random: Random, keys: readonly string[], count: number): Record<string, Login> {
  const seen = new Set<string | undefined>();
  const chosen = random.some(keys, count).filter((key) => {
    const index = indexKey(key);
    return !seen.has(index) && seen.add(index);
  });
  return Object.fromEntries(chosen.map((key) => [key, randomLogin(random)]));
}

/** The `auths` of a `config.json`, sometimes with odd entries. */
function randomAuths(random: Random, keys: readonly string[]): Record<string, unknown> {
  const logins = Object.entries(randomLogins(random, keys, random.below(5)));
  return Object.fromEntries(
    logins.map(([key, login]) => {
      if (random.chance(0.06)) return [key, {}];
      if (random.chance(0.2)) return [key, { ...login }];
      return [
        key,
        { ...entry(login), ...(random.chance(0.2) && { email: 'a@b.example', username: 'hidden' }) },
      ];
    }),
  );
}

function randomDockerConfigs(random: Random, keys: readonly string[]): Record<string, string> {
  const paths = random.chance(0.7) ? random.some(dockerConfigs, 1 + random.below(2)) : [];
  return Object.fromEntries(
    paths.map((path) => {
      if (random.chance(0.15))
        return [path, random.pick(['', '{', '{"auths":[]}', '{"auths":{"x":{"auth":"%"}}}'])];
      const auths = randomAuths(random, keys);
      return [path, path.endsWith('.dockercfg') ? JSON.stringify(auths) : dockerConfig(auths)];
    }),
  );
}

function randomPlugins(
  random: Random,
  keys: readonly string[],
): { files: Record<string, string>; plugins: NonNullable<Setup['plugins']> } {
  const behaviors: Record<string, Behavior> = {};
  const providers = Array.from({ length: 1 + random.below(4) }, (_, index): readonly [string, Provider] => {
    const name = `${random.pick(['a', 'm', 'z'])}-plugin-${index}`;
    const version = random.pick(['v1', 'v1', 'v1beta1', 'v1alpha1']);
    behaviors[name] = randomBehavior(random, keys, version);
    const provider = {
      version,
      // A pattern with a scheme is valid but matches nothing, so most have none.
      matchImages: random
        .some(keys, 1 + random.below(4))
        .map((key) => (random.chance(0.05) ? key : bare(key))),
      defaultCacheDuration: random.pick(['0s', '1h', '1h30m', '10m']),
      ...(random.chance(0.4) && { args: ['get', `--name=${name}`].slice(random.below(2)) }),
      ...(random.chance(0.4) && { env: { TWICE: 'of the plugin', NAME: name } }),
    };
    return [name, provider];
  });
  const as: WrittenAs = {
    version: random.pick(['v1', 'v1', 'v1beta1', 'v1alpha1']),
    format: random.pick(['json', 'yaml']),
  };
  const isDirectory = random.chance(0.4);
  const plugins = { config: pluginConfig, isDirectory, behaviors };
  if (!isDirectory) return { files: { [pluginConfig]: providersFile(providers, as) }, plugins };
  const files = providers.map((provider, index) => {
    const path = `${pluginConfig}/${random.below(10)}-${index}.${random.pick(['json', 'yaml', 'yml'])}`;
    return [path, providersFile([provider], as)];
  });
  const others = { [`${pluginConfig}/40.txt`]: 'not read', [`${pluginConfig}/sub.yaml/5.yaml`]: 'not read' };
  return { files: { ...others, ...(Object.fromEntries(files) as Record<string, string>) }, plugins };
}

function randomBehavior(random: Random, keys: readonly string[], version: string): Behavior {
  if (random.chance(0.08)) return { stdout: response(null, { version }) };
  const stdout = response(randomLogins(random, keys, 1 + random.below(3)), {
    version,
    cacheKeyType: random.pick(['Image', 'Registry', 'Global']),
    ...(random.chance(0.5) && { cacheDuration: random.pick(['0s', '2h', '90m', '-1s']) }),
  });
  if (random.chance(0.06)) return { stdout, exit: 1, stderr: 'denied', failing: true };
  if (random.chance(0.06)) return { stdout: stdout.slice(0, -1), failing: true };
  return { stdout };
}

function randomPod(
  random: Random,
  name: string,
  domains: readonly string[],
  teams: readonly string[],
  keys: readonly string[],
): PodCase {
  const images = Array.from({ length: 1 + random.below(3) }, (_, index): CaseImage => {
    const domain = random.some(domains, 1)[0] ?? '';
    const team = random.some(teams, 1)[0] ?? '';
    const repository = random.chance(0.4) ? 'shared' : `${name}-${index}`;
    const prefix = domain === 'docker.io' && random.chance(0.5) ? '' : `${domain}/`;
    return {
      image: `${prefix}${team}/${repository}:${name}-${index}`,
      ...(random.chance(0.06) && { absent: true }),
    };
  });
  const secrets = random.chance(0.55)
    ? Array.from({ length: 1 + random.below(3) }, () => randomSecret(random, keys))
    : [];
  return { name, images, secrets };
}

function randomSecret(random: Random, keys: readonly string[]): PullSecret {
  if (random.chance(0.06)) return {};
  const auths = randomAuths(random, keys);
  if (random.chance(0.05)) return { type: 'Opaque', data: { '.dockerconfigjson': dockerConfig(auths) } };
  if (random.chance(0.15))
    return { type: 'kubernetes.io/dockercfg', data: { '.dockercfg': JSON.stringify(auths) } };
  const broken = random.chance(0.04)
    ? { 'other.example': { auth: random.pick(['%', 'YWJj', 'YTpi=']) } }
    : {};
  return {
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': dockerConfig({ ...auths, ...broken }) },
  };
}
