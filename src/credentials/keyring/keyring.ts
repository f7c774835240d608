/**
 * A keyring: the credentials of one source, found by repository (kubernetes pkg/credentialprovider/keyring.go
 * `BasicDockerKeyring`). Every matching key contributes all its credentials. Keys are tried in descending
 * byte order: a longer path before its prefix, a literal label before `*`. Credentials under one key keep
 * their order, equal ones too. Images of Docker Hub that match no key use the classic key `index.docker.io`.
 */
import type {
  Credential,
  CredentialSource,
  CredentialSourceName,
  HeldCredential,
  MatchedCredential,
} from '../credential.ts';
import { compareBytes } from '../../names/values.ts';
import { credentialId } from '../identity.ts';
import { indexKey, matches, parsePattern, type Pattern } from './key.ts';

export type Keyring = ReturnType<typeof createKeyring>;

const dockerHubKey = 'index.docker.io';

/** @param held in the order of secrets, and of entries in each secret */
export function createKeyring(source: CredentialSourceName, held: readonly HeldCredential[]) {
  const slots = new Map<string, Slot>();
  for (const one of held) {
    const slot = slots.get(one.key) ?? { pattern: parsePattern(one.key), held: [] };
    slot.held.push(one);
    slots.set(one.key, slot);
  }
  const sorted = [...slots].sort(([a], [b]) => compareBytes(b, a)).map(([, slot]) => slot);

  return {
    /** The credentials for a normalized repository, in order of use. */
    lookup(repository: string): readonly MatchedCredential[] {
      const wanted = parsePattern(repository);
      const found = sorted.flatMap((slot) =>
        slot.pattern !== undefined && wanted !== undefined && matches(slot.pattern, wanted)
          ? credentialsOf(slot, source)
          : [],
      );
      if (found.length > 0 || !isDockerHub(repository)) return found;
      const classic = slots.get(dockerHubKey);
      return classic === undefined ? [] : credentialsOf(classic, source);
    },
  };
}

/** The credentials under one key. */
interface Slot {
  readonly pattern: Pattern | undefined;
  readonly held: HeldCredential[];
  matched?: readonly MatchedCredential[];
}

/** Made when they first match: the identity is most of the cost of a keyring. */
function credentialsOf(slot: Slot, source: CredentialSourceName): readonly MatchedCredential[] {
  slot.matched ??= slot.held.map(({ key, credential, origin, source: own = source }) => {
    return { credential, source: own, key, origin, id: credentialId(credential) };
  });
  return slot.matched;
}

/** The entries of a docker config by index key, and the number of keys that are not registries. */
export function holdEntries(
  entries: ReadonlyMap<string, Credential>,
  origin: string,
): { held: readonly HeldCredential[]; skipped: number } {
  const held = [...entries].flatMap(([mapKey, { username, password, isIdentityToken }]) => {
    const key = indexKey(mapKey);
    const credential = { username, password, ...(isIdentityToken && { isIdentityToken }) };
    return key === undefined ? [] : [{ key, credential, origin }];
  });
  return { held, skipped: entries.size - held.length };
}

/** Whether the classic key of Docker Hub may be used (upstream `isDefaultRegistryMatch`). */
export function isDockerHub(repository: string): boolean {
  const [domain = '', path] = repository.split('/', 2);
  if (domain === '') return false;
  return path === undefined || domain === 'docker.io' || domain === dockerHubKey || !/[.:]/.test(domain);
}

/**
 * Several sources as one. The most specific key wins only inside a source; results are concatenated in the order
 * of the sources (kubernetes pkg/credentialprovider `UnionDockerKeyring`).
 * @param sources in order of use
 */
export function combineSources(sources: readonly CredentialSource[]): Omit<CredentialSource, 'name'> {
  return {
    async lookup(...request) {
      const found = await Promise.all(sources.map((source) => source.lookup(...request)));
      return found.flat();
    },
    problems: () => sources.flatMap((source) => source.problems()),
  };
}

/**
 * Whether a repository without a matching credential may be requested anonymously: not if the anonymous
 * responses of its registry are misleading, or count as attacks.
 * @param privateRegistries patterns as in `matchImages`: `*.corp.example`, `registry.corp:5000/team`
 */
export function mayAskAnonymously(repository: string, privateRegistries: readonly string[]): boolean {
  const wanted = parsePattern(repository);
  if (wanted === undefined) return privateRegistries.length === 0;
  return !privateRegistries.some((text) => {
    const pattern = parsePattern(text);
    return pattern !== undefined && matches(pattern, wanted);
  });
}
