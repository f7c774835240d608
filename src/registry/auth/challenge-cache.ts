/** Authentication schemes of endpoints, remembered so that the next request needs no challenge. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { AuthScheme, ChallengedRequest } from './auth-scheme.ts';
import { repositoryScope, sameScopes } from './scope.ts';

/** Image references choose endpoints and repositories, so there could be any number. */
const maxSchemes = 1000;

export class ChallengeCache {
  readonly #schemes = new BoundedMap<string, AuthScheme>(maxSchemes);

  recall(request: ChallengedRequest): AuthScheme | undefined {
    const base = baseOf(request);
    const exact = this.#schemes.get(`${base} ${request.repository}`);
    if (exact) return exact;
    const general = this.#schemes.get(base);
    if (general?.scheme !== 'bearer') return general;
    return { ...general, scopes: [repositoryScope(request.repository)] };
  }

  learn(request: ChallengedRequest, scheme: AuthScheme): void {
    const base = baseOf(request);
    const exact = `${base} ${request.repository}`;
    this.#schemes.set(base, scheme);
    // Some registries require another scope than the path's; that scope holds for one repository only.
    const isUsual =
      scheme.scheme === 'basic' || sameScopes(scheme.scopes, [repositoryScope(request.repository)]);
    if (isUsual) this.#schemes.delete(exact);
    else this.#schemes.set(exact, scheme);
  }

  clear(): void {
    this.#schemes.clear();
  }
}

function baseOf({ endpoint, url }: ChallengedRequest): string {
  return `${url.protocol} ${endpoint.base} ${endpoint.namespace}`;
}
