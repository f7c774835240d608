/** registries.conf and its drop-ins: prefixes that fit the image or nearly do, mirrors, short names. */
import type { NodeFiles } from '../node/case.ts';
import { placeNames, type PlaceName, type Places } from '../node/world.ts';
import type { Random } from '../random.ts';

const main = '/etc/containers/registries.conf';
const own = '/root/.config/containers/registries.conf';
const dropIns = ['/etc/containers/registries.conf.d/10.conf', '/etc/containers/registries.conf.d/9.conf'];

/** As an image names it. */
export function domainOf(host: string): string {
  return host === 'registry-1.docker.io' ? 'docker.io' : host;
}

/** @param domain of the image; empty: a short name */
export function generateRegistries(random: Random, places: Places, domain: string): NodeFiles {
  if (random.chance(0.05)) return {};
  if (random.chance(0.05)) return { [main]: oldFormat(random, places, domain) };
  const files: Record<string, string> = {
    [random.chance(0.05) ? own : main]: newFormat(random, places, domain),
  };
  for (const path of dropIns) {
    if (random.chance(0.15)) files[path] = newFormat(random, places, domain);
  }
  return files;
}

function newFormat(random: Random, places: Places, domain: string): string {
  const lines: string[] = [];
  if (domain === '' || random.chance(0.1)) {
    const search = random.some(placeNames, random.below(3)).map((name) => domainOf(places[name]));
    if (random.chance(0.8)) lines.push(`unqualified-search-registries = ${JSON.stringify(search)}`);
    if (random.chance(0.4)) lines.push('[aliases]', `"REPOSITORY" = "${place(random, places).location}"`);
  }
  for (let count = random.below(4); count > 0; count -= 1) lines.push(...entry(random, places, domain));
  if (random.chance(0.01)) lines.push('broken');
  return `${lines.join('\n')}\n`;
}

interface Place {
  readonly location: string;
  /** Speaks no TLS. */
  readonly isPlain: boolean;
}

const plainNames: ReadonlySet<PlaceName> = new Set(['plain', 'plain2', 'localhost', 'plainName']);

function place(random: Random, places: Places, end = '/REPOSITORY'): Place {
  const name = random.pick(placeNames);
  const path = random.chance(0.3) ? '/sub' : '';
  return { location: `${domainOf(places[name])}${path}${end}`, isPlain: plainNames.has(name) };
}

/** Mostly as the place needs it. */
const insecure = (random: Random, { isPlain }: Place): string[] =>
  random.chance(isPlain ? 0.85 : 0.1) ? ['insecure = true'] : [];

function entry(random: Random, places: Places, domain: string): string[] {
  const host = domain === '' || random.chance(0.2) ? domainOf(places[random.pick(placeNames)]) : domain;
  // What follows the prefix in the image's name; locations get it too.
  const [prefix, rest] = random.weighted<readonly [string, string]>([
    [6, [host, '']],
    [3, [`${host}/team`, '/team']],
    [1, [`${host}/REPOSITORY`, '/REPOSITORY']],
    [1, [host.split(':', 1)[0] ?? host, '']],
    [1, [`*.${host.split(/[.:]/).slice(1).join('.')}`.replace(/:\d+$/, ''), '']],
    [0.3, [`${host}/tea`, '/tea']],
  ]);
  const isPattern = prefix.startsWith('*.');
  const target = place(random, places, rest);
  const isMoved = isPattern ? random.chance(0.5) : random.chance(0.35);
  const location = isMoved ? target.location : isPattern ? '' : prefix;
  const at = isMoved
    ? target
    : {
        location,
        isPlain: placeNames.some((name) => plainNames.has(name) && location.startsWith(places[name])),
      };
  const lines = ['[[registry]]', ...insecure(random, at)];
  if (location !== '') lines.push(`location = "${location}${random.chance(0.03) ? '/' : ''}"`);
  if (isMoved || isPattern || random.chance(0.5)) lines.push(`prefix = "${prefix}"`);
  if (random.chance(0.07)) lines.push('blocked = true');
  const byDigest = random.chance(0.1);
  if (byDigest) lines.push('mirror-by-digest-only = true');
  for (let count = random.below(4); count > 0; count -= 1) {
    const mirror = place(random, places, rest);
    lines.push('[[registry.mirror]]', `location = "${mirror.location}"`, ...insecure(random, mirror));
    if (!byDigest && random.chance(0.2))
      lines.push(`pull-from-mirror = "${random.pick(['all', 'digest-only', 'tag-only'])}"`);
  }
  return lines;
}

function oldFormat(random: Random, places: Places, domain: string): string {
  const some = (): string => JSON.stringify(random.some(placeNames, 2).map((name) => domainOf(places[name])));
  const lines = [`[registries.search]`, `registries = ${some()}`, '[registries.insecure]'];
  lines.push(`registries = ${JSON.stringify([places.plain, places.localhost, 'plain.example'])}`);
  if (random.chance(0.3)) lines.push('[registries.block]', `registries = ${some()}`);
  if (random.chance(0.1)) lines.push('[[registry]]', `location = "${domain || 'a.example'}"`);
  return `${lines.join('\n')}\n`;
}
