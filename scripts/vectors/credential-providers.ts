/** Handlers of credential_provider_exec.json. */
import { isDeepStrictEqual } from 'node:util';
import { pluginEnvironment } from '../../daemon/kubelet/run/environment.ts';
import { PluginError } from '../../daemon/kubelet/run/plugin-error.ts';
import type { ProviderConfig, TokenAttributes } from '../../daemon/kubelet/config/provider-config.ts';
import { cacheKey, registryOf, CredentialCache, Provider } from '../../daemon/kubelet/provider/provider.ts';
import {
  type Execute,
  encodeRequest,
  decodeResponse,
  type ProviderResponse,
} from '../../daemon/kubelet/run/execute.ts';
import type { Auth, ServiceAccountTokens } from '../../daemon/kubelet/provider/service-account.ts';
import type { ServiceAccountName } from '../../src/credentials/credential.ts';
import { createKeyring, holdEntries } from '../../src/credentials/keyring/keyring.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { notCompared, type Handlers, type Input, type Vector } from './handler.ts';
import { flag, isObject, itemOf, list, number, object, text, texts } from './input.ts';
import { noTimers } from '../../test/support/fake-clock.ts';

export const credentialProviders: Handlers = {
  encode_request: (input) => {
    const request = object(input, 'request');
    const token = request['serviceAccountToken'];
    return {
      stdin: encodeRequest(text(input, 'apiVersion'), {
        image: text(request, 'image'),
        ...(typeof token === 'string' && { token: secret(token) }),
        annotations: annotationsOf(request['serviceAccountAnnotations']) ?? {},
      }),
    };
  },

  decode_response: (input, { expected }) => {
    try {
      const response = decodeResponse(text(input, 'stdout'), text(input, 'expectedApiVersion'));
      const { cacheKeyType, cacheDurationMs = null, auth } = response;
      return { ok: true, response: { cacheKeyType, cacheDurationMs, auth: open(auth) } };
    } catch (error) {
      const prefix = isObject(expected) ? expected['errorPrefix'] : undefined;
      if (!(error instanceof PluginError) || typeof prefix !== 'string') throw error;
      return { ok: false, errorPrefix: error.message.startsWith(prefix) ? prefix : error.message };
    }
  },

  // The kubelet keeps every value of a name, of which Go passes on the last.
  merge_env: (input, { expected }) => {
    const record = (list: readonly string[]) =>
      Object.fromEntries(list.map((each) => each.split(/=(.*)/s, 2) as [string, string]));
    const configured = list(input, 'config').map(itemOf);
    const env = configured.map((each) => ({ name: text(each, 'name'), value: text(each, 'value') }));
    const merged = pluginEnvironment(record(texts(input, 'system')), {}, env);
    const environ = isObject(expected) ? texts(expected, 'environ') : [];
    return { environ: isDeepStrictEqual(merged, record(environ)) ? environ : merged };
  },

  // Keys of archwright's cache are texts of its own.
  service_account_cache_key: () => notCompared,
  cache_key: () => notCompared,
  cache_key_for_response: () => notCompared,

  cache_expiry: (input) => {
    // A case begins a new sequence unless its note refers to the previous one.
    if (!('note' in input && text(input, 'note').includes('previous'))) expiry = startExpiry();
    const { cache, clock } = expiry;
    cache.set(cacheKey(text(input, 'entryKey')), new Map(), number(input, 'expiresInSeconds') * 1000);
    clock.at += number(input, 'advanceSeconds') * 1000;
    return { found: cache.get(text(input, 'lookup')) !== undefined, cachedKeysAfter: notCompared };
  },

  provide: async (input, vector) => {
    const mode = isObject(input['serviceAccountMode']) ? input['serviceAccountMode'] : undefined;
    let runs = 0;
    const provider = new Provider({
      config: configOf(texts(input, 'matchImages'), mode && attributesOf(mode)),
      clock: { ...noTimers, now: () => 0, monotonic: () => 0 },
      tokens: mode && tokensOf(mode),
      execute: () => {
        runs += 1;
        return Promise.resolve(responseOf(object(input, 'response')));
      },
    });
    const account = isObject(input['pod']) ? accountOf(input['pod']) : undefined;
    // Only static pods have none. archwright does not run the plugin for them.
    if (account?.name === '') return notCompared;
    const image = text(input, 'image');
    const { auth, reason } = await provider.provide(image, account);
    const executed = runs > 0;
    const again = await provider.provide(image, account);
    return named(vector, {
      dockerConfig: open(auth),
      pluginExecuted: executed,
      log: reason,
      cachedKeys: runs === 1 && again.reason === undefined ? 1 : 0,
      serviceAccount: notCompared,
    });
  },

  singleflight: async (input) => {
    const mode = flag(input, 'serviceAccountMode');
    let executions = 0;
    let tokens = 0;
    const provider = new Provider({
      config: configOf(
        ['registry.example'],
        mode ? attributesOf({ requireServiceAccount: true }) : undefined,
      ),
      clock: { ...noTimers, now: () => 0, monotonic: () => 0 },
      tokens: {
        serviceAccount: () => Promise.resolve({ uid: 'uid', annotations: {} }),
        tokenFor: () => {
          tokens += 1;
          return Promise.resolve(secret(input['sameToken'] === true ? 'token' : `token-${tokens}`));
        },
      },
      execute: async () => {
        executions += 1;
        // Long enough for the others to arrive.
        await new Promise((resolve) => setImmediate(resolve));
        return { cacheKeyType: 'Image', cacheDurationMs: 0, auth: new Map() };
      },
    });
    const same = flag(input, 'sameImage');
    const calls = Array.from({ length: number(input, 'concurrentCalls') }, (_, index) =>
      provider.provide(
        `registry.example/image${same ? '' : index}`,
        mode ? { namespace: 'ns', name: 'account' } : undefined,
      ),
    );
    await Promise.all(calls);
    return { executions };
  },

  multi_provider_lookup: async (input) => {
    const image = text(input, 'image');
    const executed: number[] = [];
    const held = [];
    for (const [index, logins] of list(input, 'providers').map(itemOf).entries()) {
      executed[index] = 0;
      const execute: Execute = () => {
        executed[index] = (executed[index] ?? 0) + 1;
        return Promise.resolve({ cacheKeyType: 'Image', auth: authOf(logins) });
      };
      const clock = { ...noTimers, now: () => 0, monotonic: () => 0 };
      const provider = new Provider({ config: configOf([registryOf(image)]), execute, clock });
      const { auth } = await provider.provide(image);
      held.push(...holdEntries(auth, `provider ${index}`).held);
    }
    const found = createKeyring('credential-provider', held).lookup(image);
    return { found: found.length > 0, count: found.length, executed };
  },

  registry_of_image: (input) => ({ registry: registryOf(text(input, 'image')) }),
};

interface Expiry {
  readonly cache: CredentialCache;
  readonly clock: { at: number };
}
let expiry = startExpiry();

function startExpiry(): Expiry {
  const clock = { at: 0 };
  return {
    clock,
    cache: new CredentialCache({ ...noTimers, now: () => clock.at, monotonic: () => clock.at }),
  };
}

function configOf(matchImages: string[], tokenAttributes?: TokenAttributes): ProviderConfig {
  return {
    name: 'vector',
    matchImages,
    defaultCacheDuration: 0,
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    tokenAttributes,
  };
}

function attributesOf(mode: Input): TokenAttributes {
  return {
    serviceAccountTokenAudience: 'audience',
    cacheType: typeof mode['cacheType'] === 'string' ? mode['cacheType'] : '',
    requireServiceAccount: mode['requireServiceAccount'] === true,
    requiredServiceAccountAnnotationKeys:
      'requiredAnnotationKeys' in mode ? texts(mode, 'requiredAnnotationKeys') : [],
    optionalServiceAccountAnnotationKeys:
      'optionalAnnotationKeys' in mode ? texts(mode, 'optionalAnnotationKeys') : [],
  };
}

function tokensOf(mode: Input): ServiceAccountTokens {
  return {
    serviceAccount: () =>
      Promise.resolve({
        uid: 'serviceAccountUid' in mode ? text(mode, 'serviceAccountUid') : '',
        annotations: annotationsOf(mode['serviceAccountAnnotations']) ?? {},
      }),
    tokenFor: () =>
      typeof mode['tokenError'] === 'string'
        ? Promise.reject(new Error(mode['tokenError']))
        : Promise.resolve(secret(text(mode, 'token'))),
  };
}

function accountOf(pod: Input): ServiceAccountName {
  return { namespace: text(pod, 'namespace'), name: text(pod, 'serviceAccountName') };
}

function responseOf(fields: Input): ProviderResponse {
  const ms = fields['cacheDurationMs'];
  return {
    cacheKeyType: text(fields, 'cacheKeyType'),
    cacheDurationMs: typeof ms === 'number' ? ms : undefined,
    auth: authOf(isObject(fields['auth']) ? fields['auth'] : {}),
  };
}

function authOf(fields: Input): Auth {
  return new Map(
    Object.keys(fields).map((key) => {
      const entry = object(fields, key);
      return [key, { username: text(entry, 'username'), password: secret(text(entry, 'password')) }];
    }),
  );
}

function open(auth: Auth): Record<string, unknown> {
  return Object.fromEntries(
    [...auth].map(([key, { username, password }]) => [key, { username, password: reveal(password) }]),
  );
}

function annotationsOf(value: unknown): Record<string, string> | undefined {
  if (!isObject(value)) return undefined;
  return Object.fromEntries(Object.keys(value).map((key) => [key, text(value, key)]));
}

/** Only the members in `expected`. */
function named({ expected }: Vector, actual: Record<string, unknown>): Record<string, unknown> {
  const names = isObject(expected) ? expected : {};
  return Object.fromEntries(Object.entries(actual).filter(([name]) => name in names));
}
