/**
 * Several credential sources as one. Each source is a keyring of its own, so the most specific key wins only
 * inside a source; results are concatenated in the order of the sources (kubernetes pkg/credentialprovider
 * `UnionDockerKeyring`).
 */
import type { CredentialSource } from '../credential.ts';
import { hashOf } from '../../names/hash.ts';
import { matches, parsePattern } from '../keyring/key.ts';

/** @param sources in order of use */
export function combineSources(sources: readonly CredentialSource[]): Omit<CredentialSource, 'name'> {
  return {
    async lookup(...request) {
      const found = await Promise.all(sources.map((source) => source.lookup(...request)));
      return found.flat();
    },
    problems: () => sources.flatMap((source) => source.problems()),
    fingerprint: () => hashOf(sources.flatMap((source) => [source.name, source.fingerprint()])),
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
