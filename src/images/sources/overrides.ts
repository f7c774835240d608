/**
 * `[[imageOverrides]]`: settings that replace what a registry states. The first match counts.
 *
 * `match` is a glob over the normalized image, `domain/path[:tag]`:
 * - `*` stands for any characters but `/`, `**` for any characters. Everything else is literal.
 * - A short name is Docker Hub's, as in a pod: `nginx` is `docker.io/library/nginx`, `team/app` is
 *   `docker.io/team/app`. A first component with a star counts as a registry, so `**` is every image.
 * - Without a tag it matches every tag and digest. With `:tag` (`*` allowed) it matches images that name such
 *   a tag, or none where the tag is `latest`. With `@sha256:…` it matches exactly that digest.
 */
import { glob } from '../../names/glob.ts';
import type { Clock } from '../../async/clock.ts';
import type { ImageFacts } from '../facts/facts.ts';
import { amd64Levels } from '../../nodes/amd64-level.ts';
import type { Amd64Level } from '../../nodes/node-class.ts';
import { defaultDomain, defaultTag, legacyDefaultDomain, type Reference } from '../references/reference.ts';

export interface ImageOverride {
  readonly match: string;
  /** Values of `kubernetes.io/arch`. Empty: the image constrains nothing. Absent: the registry decides. */
  readonly architectures?: readonly string[];
  /** The x86-64 level that its programs need on amd64. */
  readonly level?: `v${Amd64Level}`;
}

export interface Overrides {
  /**
   * @param image as written in the pod; copied into the facts
   * @param shortName if a node finds its registry: rules on registries are checked there
   */
  find(image: string, reference: Reference, shortName?: string): ImageFacts | undefined;
  /** The level that programs of an image need on amd64. Absent if no override has a level. */
  readonly levelOf?: ((reference: Reference) => Amd64Level | undefined) | undefined;
}

/** Nothing is overridden. */
export const noOverrides: Overrides = { find: () => undefined };

/** More stars than this in one pattern could take long to match against a name made for it. */
const maxStars = 8;
const maxPatternLength = 512;

/** An override names architectures, not systems: it holds for every system that a pod is for. */
const podSystems = ['linux', 'windows'] as const;

/** A pattern that cannot be used; `message` has the reason. */
export class OverridePatternError extends Error {
  override readonly name = 'OverridePatternError';
  constructor(pattern: string, message: string) {
    super(`image override ${JSON.stringify(pattern)}: ${message}`);
  }
}

/** @throws OverridePatternError */
export function compileOverrides(overrides: readonly ImageOverride[], clock: Clock): Overrides {
  const compiled = overrides.map(({ match, architectures, level: written }) => ({
    matches: imagePattern(match),
    platforms:
      architectures &&
      podSystems.flatMap((os) => architectures.map((architecture) => ({ os, architecture }))),
    level: amd64Levels.find((each) => written === `v${each}`),
  }));
  const first = (reference: Reference) => compiled.find(({ matches }) => matches(reference));
  return {
    ...(compiled.some(({ level }) => level) && { levelOf: (reference) => first(reference)?.level }),
    find: (image, reference) => {
      const platforms = first(reference)?.platforms;
      if (!platforms) return undefined;
      const origin = { source: 'override', credentialSource: 'anonymous', endpoint: '' } as const;
      const confirmedAt = new Date(clock.now()).toISOString();
      return { image, platforms, ...origin, confirmedAt, stale: false };
    },
  };
}

/** Whether an image matches, as above. @throws OverridePatternError */
export function imagePattern(match: string): (reference: Reference) => boolean {
  if (match.length > maxPatternLength) {
    throw new OverridePatternError(match.slice(0, 64), `longer than ${maxPatternLength} characters`);
  }
  if ((match.match(/\*+/g) ?? []).length > maxStars) {
    throw new OverridePatternError(match, `more than ${maxStars} stars`);
  }
  const [name = '', digest, ...more] = match.split('@');
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1);
  const repository = colon < 0 ? name : name.slice(0, colon);
  const tag = colon < 0 ? undefined : name.slice(colon + 1);
  if (repository === '' || /[\s]/.test(match)) throw new OverridePatternError(match, 'names no image');
  if (tag === '' || digest === '' || more.length > 0) {
    throw new OverridePatternError(match, 'has an empty tag or digest, or more than one');
  }
  const repositories = glob(withDomain(repository));
  const tags = tag === undefined ? undefined : glob(tag);
  return (reference) => {
    if (!repositories.test(reference.repository)) return false;
    if (digest !== undefined) return reference.digest === digest;
    if (tags === undefined) return true;
    const named = reference.tag ?? (reference.digest === undefined ? defaultTag : undefined);
    return named !== undefined && tags.test(named);
  };
}

/** The rule of distribution/reference `normalize.go` splitDockerDomain, with stars. */
function withDomain(repository: string): string {
  const slash = repository.indexOf('/');
  const head = slash < 0 ? repository : repository.slice(0, slash);
  if (slash < 0) return head.includes('**') ? head : `${defaultDomain}/library/${head}`;
  if (head === legacyDefaultDomain) return defaultDomain + repository.slice(slash);
  return /[.:*A-Z]/.test(head) || head === 'localhost' ? repository : `${defaultDomain}/${repository}`;
}
