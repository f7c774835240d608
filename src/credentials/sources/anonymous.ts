/**
 * Asking without credentials. The kubelet does it only where no credential matched; `privateRegistries` of the
 * configuration names registries where even that is not wanted, because an anonymous answer there would be about
 * something else, or would count as an attack.
 */
import { matches, parsePattern } from '../keyring/match.ts';

/**
 * Whether a repository for which no credential matched may be asked for anonymously.
 * @param privateRegistries patterns as in `matchImages`: `*.corp.example`, `registry.corp:5000/team`
 */
export function mayAskAnonymously(repository: string, privateRegistries: readonly string[]): boolean {
  const asked = parsePattern(repository);
  if (asked === undefined) return privateRegistries.length === 0;
  return !privateRegistries.some((text) => {
    const pattern = parsePattern(text);
    return pattern !== undefined && matches(pattern, asked);
  });
}
