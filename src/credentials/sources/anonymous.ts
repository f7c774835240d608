/**
 * Anonymous requests. As in the kubelet, they are sent only if no credential matched. `privateRegistries` excludes registries
 * whose anonymous responses are misleading, or that count them as attacks.
 */
import { matches, parsePattern } from '../keyring/match.ts';

/**
 * Whether a repository without a matching credential may be requested anonymously.
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
