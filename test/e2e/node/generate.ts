/** Generated cases: for each containerd configuration some images, each with its own host directories. */
import { namespaceOf, type Case, type ImageKind, type NodeFiles } from './case.ts';
import type { ContainerdVersion } from '../programs/containerd.ts';
import type { PullAuth } from './cri.ts';
import { generateConfig } from './generate-config.ts';
import { generateHosts } from './generate-hosts.ts';
import { createRandom, type Random } from '../random.ts';
import { knownUser, type Behavior } from './registry.ts';
import { placeNames, type PlaceName, type Places } from './world.ts';

/** Starting containerd costs as much as four pulls. */
const casesPerConfiguration = 10;

/** Case number `n` of a seed is the same however many there are. */
export function* generateCases(options: {
  readonly seed: number;
  readonly count: number;
  readonly minor: ContainerdVersion;
  readonly places: Places;
  readonly certificates: NodeFiles;
}): Generator<Case> {
  const { seed, count, minor, places, certificates } = options;
  for (let made = 0; made < count;) {
    const random = createRandom(seed * 7919 + made);
    const config = generateConfig(random, places, minor);
    for (let index = 0; index < casesPerConfiguration && made < count; index += 1, made += 1) {
      const domain = places[random.pick(domains)].replace(/^registry-1\.docker\.io$/, 'docker.io');
      const written = writtenDomain(random, domain);
      yield {
        name: `seed ${seed}, case ${made}`,
        configuration: config.files,
        hosts: generateHosts({ random, places, certificates, namespace: namespaceOf(written) }, config.roots),
        domain: written,
        by: random.weighted([
          [7, 'tag'],
          [2, 'digest'],
          [1, 'both'],
        ] as const),
        image: generateImage(random),
        auth: generateAuth(random),
        behaviors: new Map(placeNames.map((name) => [places[name], generateBehavior(random, places)])),
      };
    }
  }
}

export function generateImage(random: Random): ImageKind {
  return random.weighted<ImageKind>([
    [6, 'multi'],
    [3, 'single'],
    [1, 'single-other'],
    [1, 'other-only'],
  ]);
}

const domains: readonly PlaceName[] = [
  'hub',
  'hub',
  'origin',
  'origin',
  'originPort',
  'originPort',
  'secure',
  'private',
  'plain',
  'localhost',
  'plainName',
  'missing',
];

/** The same registry as people may write it. */
function writtenDomain(random: Random, domain: string): string {
  if (domain === 'docker.io' && random.chance(0.2)) return 'index.docker.io';
  return domain.startsWith('origin') && random.chance(0.1) ? domain.toUpperCase() : domain;
}

function generateAuth(random: Random): PullAuth | undefined {
  return random.weighted<PullAuth | undefined>([
    [6, undefined],
    [6, knownUser],
    [2, { username: knownUser.username, password: 'wrong' }],
    [0.5, { username: '', password: '' }],
    [0.5, { username: '', password: knownUser.password }],
    [0.5, { username: knownUser.username, password: '' }],
  ]);
}

function generateBehavior(random: Random, places: Places): Behavior {
  return {
    answer: random.weighted<Behavior['answer']>([
      [12, 'image'],
      [3, 'absent'],
      [1, 401],
      [1, 403],
      [0.5, 429],
      [1, 500],
      [1, 503],
      [1, 'drop'],
      [1, 'cut'],
      [1, 'forged'],
      [0.7, 'get-500'],
      [1, 'no-head'],
      [1, 'no-digest'],
      [1, 'redirect'],
    ]),
    auth: random.weighted<Behavior['auth']>([
      [10, 'open'],
      [4, 'basic'],
      [5, 'bearer'],
      [3, 'bearer-elsewhere'],
      [0.6, 'bearer-plain-realm'],
      [0.3, 'unusable'],
    ]),
    anonymous: random.chance(0.4),
    post: random.chance(0.6),
    stale: random.chance(0.15),
    redirectTo: random.pick([places.mirror, places.secure, places.origin]),
    plainRealm: places.plain,
  };
}
