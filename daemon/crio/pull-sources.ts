/**
 * From where CRI-O pulls. A short name stands for its alias, else for the name in each search registry
 * (go.podman.io/image pkg/shortnames `Resolve`; cri-o internal/storage/image.go
 * CandidatesForPotentiallyShortImageName). For a repository, one entry of registries.conf applies, whose mirrors
 * come first, and its location last (pkg/sysregistriesv2/system_registries_v2.go `refMatchingPrefix`,
 * `rewriteReference`, `PullSourcesFromReference`; docker/docker_image_src.go).
 */
import { InvalidReference, parseNormalized } from '../../src/images/references/reference.ts';
import { invalid, type InvalidConfig } from '../toml.ts';
import type { ShortNameMode } from './crio-conf.ts';
import type { Mirror, RegistriesConf, RegistryEntry } from './registries-conf.ts';

export interface PullSource {
  /** `host[:port]`, as written. */
  readonly domain: string;
  readonly path: string;
  /** https without verification, and http. */
  readonly insecure: boolean;
  /** The file that names the host. `undefined`: the author of the pod has named it, or its port. */
  readonly file: string | undefined;
  /** The entry that blocks it. */
  readonly blockedBy?: RegistryEntry;
}

/**
 * The length of the part of a reference that a prefix covers; `undefined`: it does not apply. A prefix without
 * a port covers every port, as upstream.
 */
export function prefixLength(reference: string, prefix: string): number | undefined {
  const wildcard = prefix.startsWith('*.') ? prefix.slice(1) : undefined;
  const at = wildcard === undefined ? 0 : reference.indexOf(wildcard);
  const end = at + (wildcard ?? prefix).length;
  if (at < 0 || !reference.startsWith(wildcard ?? prefix, at)) return undefined;
  if (reference.slice(0, at).includes('/')) return undefined;
  return end === reference.length || /[:/@]/.test(reference.charAt(end)) ? end : undefined;
}

/** The entry with the longest prefix, a wildcard with its star; of equal ones the first. */
export function findEntry(
  { registries }: Pick<RegistriesConf, 'registries'>,
  reference: string,
): RegistryEntry | undefined {
  let found: RegistryEntry | undefined;
  for (const entry of registries) {
    const isLonger = entry.prefix.length > (found?.prefix.length ?? 0);
    if (isLonger && prefixLength(reference, entry.prefix) !== undefined) found = entry;
  }
  return found;
}

/** @param reference `domain/path` with a tag or digest @throws InvalidConfig if the result is no reference */
export function rewrite(reference: string, prefix: string, location: string): string {
  const length = prefixLength(reference, prefix);
  if (length === undefined) throw invalid(`the prefix ${prefix} does not apply to ${reference}`);
  if (location === '') {
    if (prefix.startsWith('*.')) return reference;
    throw invalid(`the prefix ${prefix} has no location`);
  }
  const rewritten = location + reference.slice(length);
  parseCanonical(rewritten);
  return rewritten;
}

/** A reference with everything that normalization would add. @throws InvalidConfig */
export function parseCanonical(text: string): { readonly domain: string; readonly path: string } {
  try {
    const { domain, path, tag, digest } = parseNormalized(text);
    const whole = `${domain}/${path}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
    // References to IPv6 literals cannot be parsed by CRI-O.
    if (whole === text && !domain.startsWith('[')) return { domain, path };
  } catch (error) {
    if (!(error instanceof InvalidReference)) throw error;
  }
  throw invalid(`${text} is no complete reference for CRI-O`);
}

/**
 * The sources in order. @param reference `domain/path` with a tag or digest
 * @param file that names the registry of the reference, if a pod's author did not
 * @throws InvalidConfig if one of them is no reference: then CRI-O sends no request at all
 */
export function pullSources(reference: string, conf: RegistriesConf, file?: string): readonly PullSource[] {
  const { domain, path } = parseCanonical(reference);
  const entry = findEntry(conf, `${domain}/${path}`);
  if (!entry) return [{ domain, path, insecure: false, file }];
  const isDigested = reference.includes('@');
  const isUsed = ({ use }: Mirror): boolean =>
    (isDigested || !entry.mirrorByDigestOnly) && use !== (isDigested ? 'tag-only' : 'digest-only');
  return [...entry.mirrors.filter(isUsed), entry].map(({ location, insecure }) => {
    const source = parseCanonical(rewrite(reference, entry.prefix, location));
    const isNamed = location.split('/', 1)[0] === source.domain;
    // It is looked up under the rewritten name; entries of mirrors are not followed any further.
    const other = findEntry(conf, `${source.domain}/${source.path}`);
    return {
      ...source,
      insecure,
      file: isNamed ? entry.file : location === '' ? file : undefined,
      ...(other?.blocked && { blockedBy: other }),
    };
  });
}

/**
 * @param name without tag and digest, as written
 * @param suffix the tag or digest: `:latest`
 * @param mode `enforcing`: a name in several registries is refused
 * @returns what it stands for, in the order of pulls, and the file that names the registries
 * @throws InvalidConfig if CRI-O refuses the name
 */
export function resolveShortName(
  name: string,
  suffix: string,
  { aliases, brokenAliases, search }: Pick<RegistriesConf, 'aliases' | 'brokenAliases' | 'search'>,
  mode: ShortNameMode,
): { readonly references: readonly string[]; readonly file: string } {
  if (brokenAliases) throw refused(name, brokenAliases.message);
  const alias = aliases.get(name);
  if (alias?.repository) return { references: [alias.repository + suffix], file: alias.file };
  const { registries, file } = search ?? { registries: [], file: 'registries.conf' };
  if (registries.length === 0)
    throw refused(name, 'it has no alias, and there are no unqualified-search-registries');
  if (registries.length > 1 && mode === 'enforcing')
    throw refused(
      name,
      `short_name_mode is enforcing, and ${file} has ${registries.length} search registries`,
    );
  const references = registries.map((registry) => {
    try {
      const { domain, path } = parseNormalized(`${registry}/${name}`);
      return `${domain}/${path}${suffix}`;
    } catch (error) {
      if (error instanceof InvalidReference) throw refused(name, error.message);
      throw error;
    }
  });
  return { references, file };
}

function refused(name: string, reason: string): InvalidConfig {
  return invalid(`CRI-O cannot pull the short name ${name}: ${reason}`);
}
