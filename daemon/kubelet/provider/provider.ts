/**
 * One credential provider (kubernetes pkg/credentialprovider/plugin/plugin.go `pluginProvider.provide`):
 * matches images, caches answers, and runs its plugin once for concurrent lookups of an image. A failure
 * means "no credentials", never an error.
 */
import { BoundedMap } from '../../../src/async/bounded-map.ts';
import type { Clock } from '../../../src/async/clock.ts';
import { SingleFlight } from '../../../src/async/single-flight.ts';
import type { Credential, ServiceAccountName } from '../../../src/credentials/credential.ts';
import { messageOf } from '../../../src/names/printable.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { matches, parsePattern, type Pattern } from '../../../src/credentials/keyring/key.ts';
import type { TokenAttributes } from '../config/provider-config.ts';
import type { Plugin } from '../config/read-config.ts';
import { PluginError } from '../run/plugin-error.ts';
import type { Execute, ProviderResponse } from '../run/execute.ts';
import {
  echoedToken,
  grantFor,
  type Auth,
  type Grant,
  type ServiceAccountTokens,
} from './service-account.ts';

export interface ProviderOptions extends Plugin {
  readonly execute: Execute;
  readonly clock: Clock;
  /** Required by providers with `tokenAttributes`. */
  readonly tokens?: ServiceAccountTokens | undefined;
  readonly onFailure?: ((failure: PluginFailure) => void) | undefined;
}

export interface Provision {
  /** The plugin's response: logins by key, in its order. */
  readonly auth: Auth;
  /** Why there are none, or why one cannot be used; absent after a valid response, even an empty one. */
  readonly reason?: string | undefined;
}

const noAccount =
  'it needs a token of the pod’s service account (tokenAttributes), and the request names no service account';

/**
 * Back-off after failures, for each image. The kubelet does not need it: it runs plugins for the pods of one node
 * and waits between its own attempts, while an agent answers for many nodes. The durations are those of
 * `ImagePullBackOff`, so plugins run no more often than in the kubelet.
 */
const firstMs = 10_000;
/** A hanging plugin occupies the concurrency limit for a minute. */
const firstAfterTimeoutMs = 60_000;
const longestMs = 300_000;

/** More than the failing images of a cluster. */
const maxKeys = 1000;

export class Provider {
  readonly config: Plugin['config'];
  readonly leftOut: Plugin['leftOut'];
  readonly #options: ProviderOptions;
  readonly #patterns: readonly Pattern[];
  readonly #cache: CredentialCache;
  readonly #runs = new SingleFlight<ProviderResponse>();
  /** Failures of runs and of token requests, oldest first. */
  readonly #failures = new BoundedMap<
    string,
    PluginFailure & { readonly until: number; readonly ms: number }
  >(maxKeys);
  /** The last response, if it had a login without user name or password. */
  #emptyLogin: PluginFailure | undefined;

  constructor(options: ProviderOptions) {
    this.config = options.config;
    this.leftOut = options.leftOut;
    this.#options = options;
    this.#patterns = options.config.matchImages.map(parsePattern).filter((pattern) => pattern !== undefined);
    this.#cache = new CredentialCache(options.clock);
  }

  matches(image: string): boolean {
    const target = parsePattern(image);
    return target !== undefined && this.#patterns.some((pattern) => matches(pattern, target));
  }

  /** @param image normalized, `domain/path` @param account of the pod @throws the signal's reason */
  async provide(image: string, account?: ServiceAccountName, signal?: AbortSignal): Promise<Provision> {
    if (!this.matches(image)) return without('no entry of matchImages matches');
    if (this.leftOut !== undefined) return without(`left out: ${this.leftOut.reason}`);
    const { tokenAttributes } = this.config;
    const { tokens } = this.#options;
    try {
      if (tokenAttributes === undefined)
        return await this.#credentials(image, undefined, account?.namespace, signal);
      if (tokens === undefined || account === undefined) return without(noAccount);
      const grant = await this.#grant(tokenAttributes, image, account, tokens);
      return await this.#credentials(image, grant, account.namespace, signal);
    } catch (error) {
      if (error instanceof PluginError) return without(error.message);
      throw error;
    }
  }

  /** The latest failure without a later success. */
  lastFailure(): PluginFailure | undefined {
    return [...this.#failures.values()].at(-1) ?? this.#emptyLogin;
  }

  async #credentials(
    image: string,
    grant: Grant | undefined,
    namespace: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Provision> {
    const cached = this.#cache.get(image, grant?.cacheKey);
    if (cached !== undefined) return { auth: cached, reason: emptyLoginIn(cached) };
    const key = grant?.runKey ?? image;
    const run = (abandoned: AbortSignal) => this.#run(key, image, grant, abandoned, namespace);
    const { auth, cacheDurationMs, cacheKeyType } = await this.#runs.run(key, run, signal);
    const { tokenAttributes, defaultCacheDuration = 0 } = this.config;
    const echoed = tokenAttributes && grant && echoedToken(tokenAttributes, image, grant.token, auth);
    if (echoed !== undefined) return without(echoed);
    const forMs = cacheDurationMs ?? defaultCacheDuration;
    const base = baseKeys.get(cacheKeyType)?.(image) ?? image;
    if (forMs !== 0) this.#cache.set(cacheKey(base, grant?.cacheKey), auth, forMs);
    return { auth, reason: emptyLoginIn(auth) };
  }

  /** The API server's refusal holds for all images of the account. @throws PluginError `no-token` */
  async #grant(
    attributes: TokenAttributes,
    image: string,
    account: ServiceAccountName,
    tokens: ServiceAccountTokens,
  ): Promise<Grant> {
    const key = `service account ${account.namespace}/${account.name}`;
    const noToken = (message: string) => new PluginError('no-token', message);
    this.#check(key);
    const found = await grantFor(attributes, image, account, tokens).catch((error: unknown) => {
      const failure = noToken(messageOf(error));
      this.#failed(key, image, failure);
      throw failure;
    });
    this.#failures.delete(key);
    if (typeof found === 'string') throw noToken(found);
    return found;
  }

  async #run(
    key: string,
    image: string,
    grant: Grant | undefined,
    abandoned: AbortSignal,
    namespace: string | undefined,
  ): Promise<ProviderResponse> {
    this.#check(key);
    try {
      const response = await this.#options.execute({ image, ...grant }, abandoned, namespace);
      if (!baseKeys.has(response.cacheKeyType)) {
        const message =
          'credential provider plugin did not return a valid cacheKeyType: Image, Registry or Global';
        throw new PluginError('bad-response', message);
      }
      this.#failures.delete(key);
      const empty = emptyLoginIn(response.auth);
      this.#emptyLogin =
        empty === undefined ? undefined : { image, error: new PluginError('bad-response', empty) };
      return response;
    } catch (error) {
      if (error instanceof PluginError && error.code !== 'stopped') this.#failed(key, image, error);
      throw error;
    }
  }

  /** @throws PluginError the failure of a key that is backed off */
  #check(key: string): void {
    const failure = this.#failures.peek(key);
    if (failure !== undefined && this.#options.clock.monotonic() < failure.until) throw failure.error;
  }

  #failed(key: string, image: string, error: PluginError): void {
    const first = error.code === 'timeout' ? firstAfterTimeoutMs : firstMs;
    const before = this.#failures.peek(key)?.ms ?? 0;
    const ms = Math.min(Math.max(first, before * 2), longestMs);
    this.#failures.set(key, { image, error, ms, until: this.#options.clock.monotonic() + ms });
    this.#options.onFailure?.({ image, error });
  }
}

/** Plugins of clouds read such variables. */
const emptyLogin =
  'the plugin returned a login without user name or password; it may lack variables of the kubelet: see ' +
  'agent.readKubeletEnvironment and kubeletEnvironment';

function emptyLoginIn(auth: Auth): string | undefined {
  const isEmpty = ({ username, password }: Credential) => username === '' || reveal(password) === '';
  return [...auth.values()].some(isEmpty) ? emptyLogin : undefined;
}

function without(reason: string): Provision {
  return { auth: new Map(), reason };
}

/** The part of the cache key that the response chooses. */
const baseKeys: ReadonlyMap<string, (image: string) => string> = new Map([
  ['Image', (image) => image],
  ['Registry', registryOf],
  ['Global', () => globalKey],
]);

export interface PluginFailure {
  readonly image: string;
  readonly error: PluginError;
}

/** A few hundred images per node, with entries of several service accounts; up to 4 KiB each. */
const maxEntries = 1000;
const maxBytes = 4 * 1_048_576;
/** JavaScript objects of each key and credential. */
const overheadBytes = 200;

/**
 * The answers of one provider (plugin.go `getCachedCredentials`). An entry expires strictly after its end. Unlike
 * the kubelet's, this cache is bounded.
 */
export class CredentialCache {
  readonly #clock: Clock;
  readonly #entries = new BoundedMap<string, { auth: Auth; end: number; bytes: number }>(maxEntries);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The entry of the image, of its registry, or of all images, in this order. Deletes expired entries. */
  get(image: string, account?: string): Auth | undefined {
    const now = this.#clock.monotonic();
    for (const [key, { end }] of this.#entries) if (now > end) this.#entries.delete(key);
    const keys = [image, registryOf(image), globalKey].map((base) => cacheKey(base, account));
    const found = keys.find((key) => this.#entries.has(key));
    return found === undefined ? undefined : this.#entries.get(found)?.auth;
  }

  /** @param forMs from now on; an entry with a negative duration is expired at once */
  set(key: string, auth: Auth, forMs: number): void {
    this.#entries.set(key, { auth, end: this.#clock.monotonic() + forMs, bytes: sizeOf(key, auth) });
    let bytes = [...this.#entries.values()].reduce((sum, entry) => sum + entry.bytes, 0);
    for (const [oldest, entry] of this.#entries) {
      if (bytes <= maxBytes) break;
      bytes -= entry.bytes;
      this.#entries.delete(oldest);
    }
  }
}

function sizeOf(key: string, auth: Auth): number {
  let bytes = overheadBytes + key.length;
  for (const [name, { username, password }] of auth)
    bytes += overheadBytes + name.length + username.length + reveal(password).length;
  return bytes;
}

/** The key for all images. An image reference cannot contain `<` and `>`, so it cannot have this key. */
const globalKey = '<global>';

/** @param base an image, a registry, or `globalKey` @param account `cacheKey` of the grant */
export function cacheKey(base: string, account = ''): string {
  return JSON.stringify([base, account]);
}

/** The registry of an image, with its port: the part before the first slash. */
export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? '';
}
