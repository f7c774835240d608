/**
 * One credential provider (kubernetes pkg/credentialprovider/plugin/plugin.go `pluginProvider.provide`): matches images, caches
 * answers, and runs its plugin once for concurrent lookups of an image. A failure means "no credentials", never an error.
 */
import { matches, parsePattern, type Pattern } from '../../../src/credentials/keyring/key.ts';
import { SingleFlight } from '../../../src/async/single-flight.ts';
import { unlessAborted } from '../../../src/async/wait.ts';
import type { Clock } from '../../../src/async/clock.ts';
import { cacheKey, globalKey, registryOf, type ServiceAccountIdentity } from './cache-key.ts';
import { CredentialCache, type Auth } from './cache.ts';
import { PluginBackOff, type Failure } from './back-off.ts';
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
 * @param signal aborts when no caller waits any more; a plugin that already runs is not stopped
 * @throws PluginError
 */
export type Execute = (request: ProviderRequest, signal: AbortSignal) => Promise<ProviderResponse>;

export interface ProviderOptions {
  readonly config: ProviderConfig;
  readonly execute: Execute;
  readonly clock: Clock;
  /** Required by providers with `tokenAttributes`. */
  readonly tokens?: ServiceAccountTokens | undefined;
  /** Called for each failed run. */
  readonly onFailure?: ((failure: Failure) => void) | undefined;
}

/** The credentials of a provider for an image. */
export interface Provision {
  /** As in the plugin's response: by key, in its order. */
  readonly auth: Auth;
  /** Why there are none; absent after a valid response, even an empty one. */
  readonly reason?: string | undefined;
  /** The service account in the request. */
  readonly serviceAccount?: ServiceAccountIdentity | undefined;
}

/** Why a provider with `tokenAttributes` is left out without `ServiceAccountTokens`. */
export const tokenReason =
  'it needs a token of the pod’s service account (tokenAttributes), and the agent may not ask for one; ' +
  'images that only this plugin has credentials for are answered as unauthorized here';

const noAccount =
  'it needs a token of the pod’s service account (tokenAttributes), and the request names no service account';

const noAuth: Auth = new Map();

export class Provider {
  readonly config: ProviderConfig;
  readonly #options: ProviderOptions;
  readonly #patterns: readonly Pattern[];
  readonly #cache: CredentialCache;
  readonly #runs = new SingleFlight<ProviderResponse>({ abortAbandoned: true });
  readonly #backOff: PluginBackOff;

  constructor(options: ProviderOptions) {
    this.config = options.config;
    this.#options = options;
    this.#patterns = options.config.matchImages.map(parsePattern).filter((pattern) => pattern !== undefined);
    this.#cache = new CredentialCache({ clock: options.clock });
    this.#backOff = new PluginBackOff(options.clock);
  }

  /** Whether an entry of `matchImages` matches. */
  matches(image: string): boolean {
    const target = parsePattern(image);
    return target !== undefined && this.#patterns.some((pattern) => matches(pattern, target));
  }

  /**
   * @param image normalised, `domain/path`
   * @param pod with the image, if known
   * @throws the signal's reason if it aborts first
   */
  async provide(image: string, pod?: PodIdentity, signal?: AbortSignal): Promise<Provision> {
    if (!this.matches(image)) return { auth: noAuth, reason: 'no entry of matchImages matches' };
    const { tokenAttributes } = this.config;
    if (tokenAttributes === undefined) return this.#credentials(image, undefined, signal);
    if (this.#options.tokens === undefined) return { auth: noAuth, reason: tokenReason };
    if (pod === undefined) return { auth: noAuth, reason: noAccount };
    const granting = this.#grant(tokenAttributes, image, pod, this.#options.tokens);
    const outcome = await (signal === undefined ? granting : unlessAborted(granting, signal));
    if (outcome.refused !== undefined) return { auth: noAuth, reason: outcome.refused };
    return this.#credentials(image, outcome.grant, signal);
  }

  /** The latest failure without a later success. */
  lastFailure(): Failure | undefined {
    return this.#backOff.latest();
  }

  async #credentials(
    image: string,
    grant: Grant | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Provision> {
    const serviceAccount = grant?.account;
    const cached = this.#cache.get(image, grant?.cacheKey);
    if (cached !== undefined) return { auth: cached, serviceAccount };
    const key = grant?.singleFlightKey.toString('latin1') ?? image;
    try {
      const response = await this.#runs.run(
        key,
        (abandoned) => this.#run(key, image, grant, abandoned),
        signal,
      );
      const { tokenAttributes } = this.config;
      const echoed =
        tokenAttributes && grant && echoedToken(tokenAttributes, image, grant.token, response.auth);
      if (echoed !== undefined) return { auth: noAuth, reason: echoed };
      this.#store(image, grant, response);
      return { auth: response.auth, serviceAccount };
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      return { auth: noAuth, reason: error.message };
    }
  }

  /** A refusal of the API server is repeated for the same service account until the back-off ends, for all its images. */
  async #grant(
    attributes: TokenAttributes,
    image: string,
    pod: PodIdentity,
    tokens: ServiceAccountTokens,
  ): Promise<GrantOutcome> {
    const key = `service account ${pod.namespace}/${pod.serviceAccountName}`;
    const failed = this.#backOff.current(key);
    if (failed !== undefined) return { refused: failed.message, isFailure: true };
    const outcome = await grantFor(attributes, image, pod, tokens);
    if (outcome.refused !== undefined && outcome.isFailure) {
      this.#failed(key, image, new PluginError('no-token', this.config.name, outcome.refused));
    } else this.#backOff.succeeded(key);
    return outcome;
  }

  async #run(
    key: string,
    image: string,
    grant: Grant | undefined,
    abandoned: AbortSignal,
  ): Promise<ProviderResponse> {
    const failed = this.#backOff.current(key);
    if (failed !== undefined) throw failed;
    try {
      const response = await this.#options.execute(requestFor(image, grant), abandoned);
      if (!cacheKeyTypes.has(response.cacheKeyType)) {
        throw new PluginError(
          'bad-response',
          this.config.name,
          'credential provider plugin did not return a valid cacheKeyType: Image, Registry or Global',
        );
      }
      this.#backOff.succeeded(key);
      return response;
    } catch (error) {
      if (error instanceof PluginError && error.code !== 'stopped') this.#failed(key, image, error);
      throw error;
    }
  }

  #failed(key: string, image: string, error: PluginError): void {
    this.#backOff.failed(key, { image, error });
    this.#options.onFailure?.({ image, error });
  }

  #store(
    image: string,
    grant: Grant | undefined,
    { auth, cacheDurationMs, cacheKeyType }: ProviderResponse,
  ): void {
    const forMs = cacheDurationMs ?? this.config.defaultCacheDurationMs ?? 0;
    if (forMs === 0) return;
    this.#cache.set(cacheKey(baseKey(image, cacheKeyType), grant?.cacheKey), auth, forMs);
  }
}

function requestFor(image: string, grant: Grant | undefined): ProviderRequest {
  return grant === undefined
    ? { image }
    : { image, serviceAccountToken: grant.token, serviceAccountAnnotations: grant.account.annotations };
}

const cacheKeyTypes: ReadonlySet<string> = new Set(['Image', 'Registry', 'Global']);

/** The part of the cache key that the response chooses. */
export function baseKey(image: string, cacheKeyType: string): string {
  if (cacheKeyType === 'Global') return globalKey;
  return cacheKeyType === 'Registry' ? registryOf(image) : image;
}
