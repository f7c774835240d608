/**
 * Which registries may be queried at all: `allowedRegistries`, `deniedRegistries`, `allowLoopbackRegistries`.
 * The rules are checked before any request and before any Secret is read. A refusal is the same whatever the
 * registry would answer.
 *
 * A glob is matched with the normalized repository, `domain/path`: `*` stands for any characters but `/`,
 * `**` for any characters. A glob without a path means every repository. Hosts are compared in lower case.
 */
import { glob } from '../../names/glob.ts';
import { namesLoopback } from '../../http/reach/reach.ts';
import type { Clock } from '../../async/clock.ts';
import { failedFacts } from '../facts/facts.ts';
import type { Reference } from '../references/reference.ts';
import type { Overrides } from './overrides.ts';

export interface RegistryRulesOptions {
  /** Empty: every registry. */
  readonly allowedRegistries: readonly string[];
  readonly deniedRegistries: readonly string[];
  readonly allowLoopbackRegistries: boolean;
}

type Name = Pick<Reference, 'domain' | 'path'>;

/** The globs are valid. @returns why a repository may not be inspected, whoever has named it */
export function compileRegistryLists({
  allowedRegistries,
  deniedRegistries,
}: Pick<RegistryRulesOptions, 'allowedRegistries' | 'deniedRegistries'>): (name: Name) => string | undefined {
  const allowed = allowedRegistries.map(compile);
  const denied = deniedRegistries.map(compile);
  return ({ domain, path }) => {
    const host = domain.toLowerCase();
    // Another spelling of a host must not lead around a denial, but is no reason to allow it.
    // The host as it is dialed: `0x0a.1` is `10.0.0.1`.
    const dialed = URL.parse(`https://${host}`)?.host ?? host;
    const spellings = [host, dialed].flatMap((each) => [each, each.replace(/:\d*$/, '')]);
    if (spellings.some((each) => denied.some((pattern) => pattern.test(`${each}/${path}`)))) {
      return 'the image is in deniedRegistries';
    }
    if (allowed.length > 0 && !allowed.some((pattern) => pattern.test(`${host}/${path}`))) {
      return 'the image is not in allowedRegistries';
    }
    return undefined;
  };
}

/** @returns forbidden images as overrides; `undefined` for an allowed one */
export function compileRegistryRules(options: RegistryRulesOptions, clock: Clock): Overrides['find'] {
  const inLists = compileRegistryLists(options);
  return (image, reference) => {
    const isForbidden = !options.allowLoopbackRegistries && isLoopback(reference.domain.toLowerCase());
    const found = isForbidden
      ? 'the image names a registry of the node itself, and allowLoopbackRegistries is false'
      : inLists(reference);
    if (found === undefined) return undefined;
    const error = { code: 'forbidden', message: `not inspected: ${found}` } as const;
    return failedFacts(image, error, clock.now(), { source: 'override' });
  };
}

function compile(pattern: string): RegExp {
  const slash = pattern.indexOf('/');
  const host = slash < 0 ? pattern : pattern.slice(0, slash);
  return glob(host.toLowerCase() + (slash < 0 ? '/**' : pattern.slice(slash)));
}

/** Any spelling of a loopback address, and names that resolve to one everywhere (RFC 6761, section 6.3). */
function isLoopback(host: string): boolean {
  return (
    /(^|\.)localhost(:\d*)?$/.test(host) ||
    (URL.canParse(`https://${host}`) && namesLoopback(`https://${host}`))
  );
}
