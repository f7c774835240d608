/** Handlers of www_authenticate.json. */
import {
  authSchemeOf,
  InvalidChallenge,
  parseChallenges,
  validateRealm,
} from '../../src/registry/auth/challenge.ts';
import { readTokenResponse } from '../../src/registry/auth/token.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { notCompared, type Handlers } from './handler.ts';
import { flag, object, text, texts } from './input.ts';

const realm = 'https://auth.example.com/token';

/** The scheme of a Bearer challenge; its scopes include the one of the repository. */
function bearerOf(repository: string, parameters: Readonly<Record<string, unknown>>) {
  const written = Object.entries(parameters).map(([name, value]) => `${name}="${String(value)}"`);
  const url = new URL('https://registry.example.com/v2/');
  const found = authSchemeOf({ url, repository }, [`Bearer ${written.join(',')}`], undefined);
  if (found?.scheme !== 'bearer') throw new TypeError('not a Bearer challenge');
  return found;
}

export const registryAuthentication: Handlers = {
  parse_challenges: (input) => ({
    containerd: parseChallenges(texts(input, 'headers')).map(({ scheme, parameters }) => ({
      parameters: Object.fromEntries(parameters),
      scheme,
    })),
    // The other library's result of the same case.
    goContainerregistry: notCompared,
  }),

  validate_realm: (input) => {
    try {
      const scheme = flag(input, 'insecure') ? 'http' : 'https';
      const url = new URL(`${scheme}://${text(input, 'registryHost') || 'none'}/v2/`);
      validateRealm(text(input, 'realm'), url);
      return { ok: true };
    } catch (error) {
      if (error instanceof InvalidChallenge) return { ok: false };
      throw error;
    }
  },

  repository_scope: (input) => {
    const locator = text(input, 'locator');
    if (flag(input, 'push')) return notCompared;
    const [scope] = bearerOf(locator.slice(locator.indexOf('/') + 1), { realm }).scopes;
    return { scope };
  },

  token_scopes: (input) => {
    const all = [...texts(input, 'contextScopes'), ...texts(input, 'challengeScopes')];
    if (!all.includes('repository:foo/bar:pull')) return notCompared;
    return { scopes: bearerOf('foo/bar', { realm, scope: all.join(' ') }).scopes };
  },

  token_options: (input) => {
    const parameters = object(input, 'parameters');
    const found = bearerOf('foo/bar', parameters);
    const scopes = parameters['scope'] === '' ? notCompared : found.scopes;
    return { ok: true, realm: found.realm.origin, service: found.service, scopes };
  },

  token_response: (input) => {
    const response = object(input, 'response');
    const { token, lastsMs } = readTokenResponse(response);
    const isDated = response['issued_at'] !== undefined;
    // It is renewed at nine tenths of its lifetime.
    const lifetimeSeconds = isDated ? notCompared : Math.round(lastsMs / 900);
    return { token: reveal(token), lifetimeSeconds, base: isDated ? notCompared : undefined };
  },
};
