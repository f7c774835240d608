/**
 * Several credential sources as one. Each source is a keyring of its own, so the most specific key wins only inside a source;
 * results are concatenated in the order of the sources (kubernetes pkg/credentialprovider `UnionDockerKeyring`).
 */
import type { CredentialSource, MatchedCredential, SourceProblem } from '../credential.ts';
import { combineFingerprints } from '../identity.ts';
import type { ServiceAccountName } from '../service-account.ts';

export interface CombinedSources {
  /**
   * @param repository normalized, `domain/path`
   * @param serviceAccount of the pod, if known
   * @throws CredentialError if one of the sources does: the node would refuse the pull
   */
  lookup(
    repository: string,
    signal?: AbortSignal,
    serviceAccount?: ServiceAccountName,
  ): Promise<readonly MatchedCredential[]>;
  /** Whether another service account may have other credentials for this repository. */
  dependsOnServiceAccount(repository: string): boolean;
  problems(): readonly SourceProblem[];
  /** Equal for equal sources in the same order. */
  fingerprint(): string;
}

/** @param sources in order of use */
export function combineSources(sources: readonly CredentialSource[]): CombinedSources {
  return {
    async lookup(repository, signal, serviceAccount) {
      const found = await Promise.all(
        sources.map((source) => source.lookup(repository, signal, serviceAccount)),
      );
      return found.flat();
    },
    dependsOnServiceAccount: (repository) =>
      sources.some((source) => source.dependsOnServiceAccount?.(repository) === true),
    problems: () => sources.flatMap((source) => source.problems()),
    fingerprint: () => combineFingerprints(sources.flatMap((source) => [source.name, source.fingerprint()])),
  };
}
