/**
 * One provider (kubernetes pkg/credentialprovider/plugin/plugin.go `pluginProvider.provide`): whether it is for an image, what it
 * answered before, and otherwise one run of its plugin, however many ask for the same image at the same time. Whatever fails
 * means "no credentials from this provider", never an error.
 */
import { matches, parsePattern } from '../../../src/credentials/keyring/match.ts';
import { SingleFlight } from '../../../src/async/single-flight.ts';
import { unlessAborted } from '../../../src/async/wait.ts';
import type { Clock } from '../../../src/async/clock.ts';
import { cacheKey, globalKey, registryOf, type ServiceAccountIdentity } from './cache-key.ts';
import { createCredentialCache, type Auth, type CredentialCache } from './cache.ts';
import { createPauses, type Failure } from './back-off.ts';
import { PluginError } from '../run/plugin-error.ts';
import type { ProviderConfig, TokenAttributes } from '../config/provider-config.ts';
import type { ProviderRequest } from '../run/request.ts';
import type { ProviderResponse } from '../run/response.ts';
import {
  echoedToken,
  grantFor,
  type Grant,
  type GrantOutcome,
  type PodIdentity,
  type ServiceAccountTokens,
} from './service-account.ts';

/**
 * Runs the plugin once.
 * @param signal aborts where nobody waits for the answer any more; a plugin that runs already is let finish
 * @throws PluginError
 */
export type Execute = (request: ProviderRequest, signal: AbortSignal) => Promise<ProviderResponse>;

export interface ProviderOptions {
  readonly config: ProviderConfig;
  readonly execute: Execute;
  readonly clock: Clock;
  /** Without it, a provider with `tokenAttributes` is left out. */
  readonly tokens?: ServiceAccountTokens | undefined;
  /** Told of each run that failed. */
  readonly onFailure?: ((failure: Failure) => void) | undefined;
}

/** What a provider has for an image. */
export interface Provision {
  /** As the plugin gave it: by key, in its order. */
  readonly auth: Auth;
  /** Why there is nothing; absent where the plugin's answer counts, an empty one too. */
  readonly reason?: string | undefined;
  /** In whose name the plugin was asked. */
  readonly serviceAccount?: ServiceAccountIdentity | undefined;
}

export interface Provider {
  readonly config: ProviderConfig;
  /** Whether one of `matchImages` matches. */
  isFor(image: string): boolean;
  /**
   * @param image normalised, `domain/path`
   * @param pod whose image it is, where that is known
   * @throws the signal's reason where it aborts first
   */
  provide(image: string, pod?: PodIdentity, signal?: AbortSignal): Promise<Provision>;
  /** The latest failure that is not made up for. */
  lastFailure(): Failure | undefined;
  readonly cache: CredentialCache;
}

/** Why a provider with `tokenAttributes` is left out where nobody may ask for tokens. */
export const tokenReason =
  'it needs a token of the pod’s service account (tokenAttributes), and the agent may not ask for one; ' +
  'images that only this plugin has credentials for are answered as unauthorized here';

const noAccount =
  'it needs a token of the pod’s service account (tokenAttributes), and the question names no service account';

const nothing: Auth = new Map();

export function createProvider(options: ProviderOptions): Provider {
  const { config, execute, clock, tokens } = options;
  const patterns = config.matchImages.map(parsePattern).filter((pattern) => pattern !== undefined);
  const cache = createCredentialCache({ clock });
  const flights = new SingleFlight<ProviderResponse>({ abortAbandoned: true });
  const pauses = createPauses(clock);

  function isFor(image: string): boolean {
    const asked = parsePattern(image);
    return asked !== undefined && patterns.some((pattern) => matches(pattern, asked));
  }

  async function provide(image: string, pod?: PodIdentity, signal?: AbortSignal): Promise<Provision> {
    if (!isFor(image)) return { auth: nothing, reason: 'no entry of matchImages matches' };
    const { tokenAttributes } = config;
    let grant: Grant | undefined;
    if (tokenAttributes !== undefined) {
      if (tokens === undefined) return { auth: nothing, reason: tokenReason };
      if (pod === undefined) return { auth: nothing, reason: noAccount };
      const granting = grantOrPause(tokenAttributes, image, pod, tokens);
      const outcome = await (signal === undefined ? granting : unlessAborted(granting, signal));
      if (outcome.refused !== undefined) return { auth: nothing, reason: outcome.refused };
      grant = outcome.grant;
    }
    const serviceAccount = grant?.account;
    const cached = cache.get(image, grant?.cacheKey);
    if (cached !== undefined) return { auth: cached, serviceAccount };
    try {
      const response = await run(image, grant, signal);
      const echoed =
        tokenAttributes && grant && echoedToken(tokenAttributes, image, grant.token, response.auth);
      if (echoed !== undefined) return { auth: nothing, reason: echoed };
      keep(image, grant, response);
      return { auth: response.auth, serviceAccount };
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      return { auth: nothing, reason: error.message };
    }
  }

  /** What the cluster refuses for a service account is not asked for again at once, however many images want it. */
  async function grantOrPause(
    attributes: TokenAttributes,
    image: string,
    pod: PodIdentity,
    from: ServiceAccountTokens,
  ): Promise<GrantOutcome> {
    const key = `service account ${pod.namespace}/${pod.serviceAccountName}`;
    const paused = pauses.current(key);
    if (paused !== undefined) return { refused: paused.message, isFailure: true };
    const outcome = await grantFor(attributes, image, pod, from);
    if (outcome.refused === undefined || !outcome.isFailure) {
      pauses.succeeded(key);
      return outcome;
    }
    const error = new PluginError('no-token', config.name, outcome.refused);
    pauses.failed(key, { image, error });
    options.onFailure?.({ image, error });
    return outcome;
  }

  async function run(
    image: string,
    grant: Grant | undefined,
    signal?: AbortSignal,
  ): Promise<ProviderResponse> {
    const key = grant?.flightKey.toString('latin1') ?? image;
    return flights.run(key, (abandoned) => runPlugin(key, image, grant, abandoned), signal);
  }

  async function runPlugin(
    key: string,
    image: string,
    grant: Grant | undefined,
    abandoned: AbortSignal,
  ): Promise<ProviderResponse> {
    const paused = pauses.current(key);
    if (paused !== undefined) throw paused;
    try {
      const response = await execute(requestFor(image, grant), abandoned);
      if (!isCacheKeyType(response.cacheKeyType)) {
        throw new PluginError(
          'bad-response',
          config.name,
          'credential provider plugin did not return a valid cacheKeyType: Image, Registry or Global',
        );
      }
      pauses.succeeded(key);
      return response;
    } catch (error) {
      if (error instanceof PluginError && error.code !== 'stopped') {
        pauses.failed(key, { image, error });
        options.onFailure?.({ image, error });
      }
      throw error;
    }
  }

  function keep(image: string, grant: Grant | undefined, response: ProviderResponse): void {
    const forMs = response.cacheDurationMs ?? config.defaultCacheDurationMs ?? 0;
    if (forMs !== 0)
      cache.set(cacheKey(baseKey(image, response.cacheKeyType), grant?.cacheKey), response.auth, forMs);
  }

  return { config, isFor, provide, lastFailure: () => pauses.latest(), cache };
}

function requestFor(image: string, grant: Grant | undefined): ProviderRequest {
  return grant === undefined
    ? { image }
    : { image, serviceAccountToken: grant.token, serviceAccountAnnotations: grant.account.annotations };
}

function isCacheKeyType(text: string): boolean {
  return text === 'Image' || text === 'Registry' || text === 'Global';
}

/** Under which base key an answer is kept. */
export function baseKey(image: string, cacheKeyType: string): string {
  if (cacheKeyType === 'Global') return globalKey;
  return cacheKeyType === 'Registry' ? registryOf(image) : image;
}
