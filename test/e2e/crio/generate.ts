/** Generated cases: registries.conf, auth files, certificates, policy.json, the image, and the registries. */
import type { PullAuth } from '../node/cri.ts';
import type { ImageKind, NodeFiles } from '../node/case.ts';
import { generateImage } from '../node/generate.ts';
import { knownUser, type Behavior } from '../node/registry.ts';
import { placeNames, type PlaceName, type Places, type World } from '../node/world.ts';
import { createRandom, type Random } from '../random.ts';
import { domainOf, generateRegistries } from './generate-registries.ts';

/** A case: a node with CRI-O as it is configured, registries as they behave, and one image to pull. */
export interface Case {
  readonly name: string;
  /** `REPOSITORY` stands for the repository of the case, such as `team/c17`. */
  readonly files: NodeFiles;
  /** `global_auth_file`; empty: the files that CRI-O's library searches. */
  readonly globalAuthFile: string;
  readonly shortNameMode: 'enforcing' | 'disabled';
  /** Paths by variable. */
  readonly environment: Readonly<Record<string, string>>;
  /** Registry domain, as the pod writes it; empty: a short name. */
  readonly domain: string;
  readonly by: 'tag' | 'digest' | 'both';
  readonly image: ImageKind;
  /** What the kubelet has for the image. */
  readonly login: PullAuth | undefined;
  /** Host → behavior. */
  readonly behaviors: ReadonlyMap<string, Behavior>;
}

type Certificates = Pick<World, 'privateCa' | 'client'>;

/** Case number `n` of a seed is the same however many there are. */
export function* generateCases(options: {
  readonly seed: number;
  readonly count: number;
  readonly places: Places;
  readonly certificates: Certificates;
}): Generator<Case> {
  const { seed, count, places, certificates } = options;
  for (let number = 0; number < count; number += 1) {
    const random = createRandom(seed * 7919 + number);
    const domain = random.chance(0.2) ? '' : domainOf(places[random.pick(domains)]);
    const registries = generateRegistries(random, places, domain);
    const authFiles = generateAuthFiles(
      random,
      hostsIn(`${domain} ${Object.values(registries).join(' ')}`, places),
    );
    yield {
      name: `seed ${seed}, case ${number}`,
      ...authFiles,
      files: {
        ...authFiles.files,
        ...registries,
        ...generateCertificates(random, places, certificates),
        ...generatePolicy(random, places),
      },
      shortNameMode: random.pick(['enforcing', 'disabled'] as const),
      domain,
      by: random.weighted([
        [7, 'tag'],
        [3, 'digest'],
        [1, 'both'],
      ] as const),
      image: generateImage(random),
      login: random.weighted<PullAuth | undefined>([
        [6, undefined],
        [3, knownUser],
        [2, { username: 'kubelet', password: 'wrong' }],
        [0.5, { username: '', password: knownUser.password }],
      ]),
      behaviors: new Map(placeNames.map((name) => [places[name], generateBehavior(random, places)])),
    };
  }
}

const domains: readonly PlaceName[] = [
  'hub',
  'hub',
  'origin',
  'origin',
  'originPort',
  'originPort',
  'secure',
  'secure',
  'private',
  'mirror',
  'plainName',
  'missing',
];

/** Hosts in a text three times as often as others. */
function hostsIn(text: string, places: Places): readonly string[] {
  const all = placeNames.map((name) => domainOf(places[name]));
  const named = all.filter((host) => text.includes(host));
  return [
    ...all,
    ...Array.from({ length: Math.ceil((3 * all.length) / Math.max(named.length, 1)) }, () => named).flat(),
  ];
}

const base64 = ({ username, password }: PullAuth): string =>
  Buffer.from(`${username}:${password}`).toString('base64');

/** The user names tell the entries apart. */
function generateEntry(random: Random, number: number): object {
  return random.weighted<object>([
    [8, { auth: base64(knownUser) }],
    [3, { auth: base64({ username: `entry-${number}`, password: 'wrong' }) }],
    [1, {}],
    [0.5, { username: 'ignored', password: 'ignored' }],
    [0.4, { auth: 'bm90IHBhZGRlZA' }],
    [0.4, { auth: Buffer.from('no colon').toString('base64') }],
  ]);
}

function generateAuthFile(random: Random, hosts: readonly string[], isOld: boolean): string {
  if (random.chance(0.02)) return random.pick(['', 'not JSON', '[]', '{"auths":1}']);
  const entries = Array.from({ length: 1 + random.below(5) }, (_, number) => {
    const host = random.pick(hosts);
    // Of two URLs of one registry, the library takes a random one.
    const url = `https://${host === 'docker.io' ? 'index.docker.io' : host}/v1/`;
    const key = random.weighted([
      [6, host],
      [2, `${host}/team`],
      [1, `${host}/REPOSITORY`],
      [1, `${host}/sub/team`],
      [1, url],
      [0.3, `${host}/`],
      [0.3, `*.${host.split('.').slice(1).join('.')}`],
      [0.3, 'https://index.docker.io/v1/'],
    ]);
    return [key, generateEntry(random, number)];
  });
  const auths: unknown = Object.fromEntries(entries);
  return JSON.stringify(isOld ? auths : { auths, credsStore: 'desktop' });
}

const searched = [
  '/run/containers/0/auth.json',
  '/root/.config/containers/auth.json',
  '/root/.docker/config.json',
  '/root/.dockercfg',
];

function generateAuthFiles(
  random: Random,
  hosts: readonly string[],
): Pick<Case, 'files' | 'globalAuthFile' | 'environment'> {
  const write = (path: string): [string, string] => [
    path,
    generateAuthFile(random, hosts, path.endsWith('.dockercfg')),
  ];
  if (random.chance(0.6)) {
    const globalAuthFile = '/etc/crio/global.json';
    const paths = [...(random.chance(0.95) ? [globalAuthFile] : []), '/root/.docker/config.json'];
    return { files: Object.fromEntries(paths.map(write)), globalAuthFile, environment: {} };
  }
  const environment = random.weighted<Case['environment']>([
    [3, {}],
    [1, { XDG_CONFIG_HOME: '/xdg' }],
    [1, { DOCKER_CONFIG: '/docker' }],
  ]);
  const paths = [...random.some(searched, 2), '/xdg/containers/auth.json', '/docker/config.json'];
  return { files: Object.fromEntries(paths.map(write)), globalAuthFile: '', environment };
}

const certificateRoots = [
  '/root/.config/containers/certs.d',
  '/etc/containers/certs.d',
  '/etc/docker/certs.d',
];

function generateCertificates(
  random: Random,
  places: Places,
  { privateCa, client }: Certificates,
): NodeFiles {
  const files: Record<string, string> = {};
  for (const name of ['private', 'mutual', 'mirrorPrivate', 'hub', 'origin'] as const) {
    const needed = name !== 'hub' && name !== 'origin';
    if (!random.chance(needed ? 0.9 : 0.2)) continue;
    const dir = `${random.pick(certificateRoots)}/${domainOf(places[name])}`;
    const good = { 'ca.crt': privateCa, 'client.cert': client.cert, 'client.key': client.key };
    const content = random.weighted<NodeFiles>([
      [8, good],
      [1, { 'ca.crt': privateCa }],
      [0.5, { README: '' }],
      [0.5, { 'ca.crt': 'garbage' }],
      [0.5, { 'ca.crt': privateCa, 'client.cert': client.cert }],
      [0.5, { 'ca.crt': privateCa, 'client.cert': 'garbage', 'client.key': client.key }],
    ]);
    for (const [file, text] of Object.entries(content)) files[`${dir}/${file}`] = text;
  }
  return files;
}

const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];

function generatePolicy(random: Random, places: Places): NodeFiles {
  const path = '/etc/containers/policy.json';
  const [first, second] = random.some(placeNames, 2).map((name) => domainOf(places[name]));
  const scopes = { [`${first}/team`]: reject, [second ?? '']: accept, '*.example': accept };
  const documents: readonly (readonly [number, string | undefined])[] = [
    [12, JSON.stringify({ default: accept })],
    [2, JSON.stringify({ default: reject, transports: { docker: scopes } })],
    [1, JSON.stringify({ default: accept, transports: { docker: { [`${first}`]: reject } } })],
    [0.3, JSON.stringify({ default: [{ type: 'signedBy', keyType: 'GPGKeys', keyData: 'eA==' }] })],
    [0.3, JSON.stringify({ default: accept, more: 1 })],
    [0.2, undefined],
  ];
  const document = random.weighted(documents);
  return document === undefined ? {} : { [path]: document };
}

function generateBehavior(random: Random, places: Places): Behavior {
  return {
    answer: random.weighted<Behavior['answer']>([
      [20, 'image'],
      [5, 'absent'],
      [1, 401],
      [1, 403],
      [1, 429],
      [1, 500],
      [1, 503],
      [1, 'drop'],
      [0.5, 'cut'],
      [0.5, 'forged'],
      [1, 'no-digest'],
    ]),
    auth: random.weighted<Behavior['auth']>([
      [5, 'open'],
      [7, 'basic'],
      [7, 'bearer'],
      [2, 'bearer-elsewhere'],
      [0.5, 'bearer-plain-realm'],
      [0.3, 'unusable'],
    ]),
    anonymous: random.chance(0.4),
    post: random.chance(0.6),
    stale: random.chance(0.15),
    plainRealm: places.plain,
    retryAfter: '0',
  };
}
