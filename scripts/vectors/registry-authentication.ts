/** Handlers of www_authenticate.json. */
import {
  InvalidChallenge,
  parseChallenges,
  repositoryScope,
  tokenOptions,
  tokenScopes,
} from '../../src/registry/auth/challenge.ts';
import { canonicalAddress, validateRealm } from '../../src/registry/auth/realm.ts';
import { readTokenResponse } from '../../src/registry/auth/token.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { notCompared, type Handlers } from './handler.ts';
import { flag, object, text, texts } from './input.ts';

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
      const registry = { host: text(input, 'registryHost'), insecure: flag(input, 'insecure') };
      validateRealm(text(input, 'realm'), registry);
      return { ok: true };
    } catch (error) {
      if (error instanceof InvalidChallenge) return { ok: false };
      throw error;
    }
  },

  canonical_address: (input) => ({
    address: canonicalAddress(text(input, 'address'), text(input, 'scheme')),
  }),

  repository_scope: (input) => {
    const locator = text(input, 'locator');
    return { scope: repositoryScope(locator.slice(locator.indexOf('/') + 1), flag(input, 'push')) };
  },

  token_scopes: (input) => ({
    scopes: tokenScopes(texts(input, 'contextScopes'), texts(input, 'challengeScopes')),
  }),

  token_options: (input) => {
    const parameters = new Map(Object.entries(object(input, 'parameters') as Record<string, string>));
    return { ok: true, ...tokenOptions({ parameters }) };
  },

  token_response: (input) => {
    const { token, lifetimeSeconds, base } = readTokenResponse(object(input, 'response'), Date.now());
    return { token: reveal(token), lifetimeSeconds, base: base === 'issued_at' ? base : undefined };
  },
};
