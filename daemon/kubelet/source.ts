/**
 * The credential provider plugins of this node as a credential source, run exactly as the kubelet of this
 * node runs them (KEP-2133, KEP-4412). As in the kubelet, all plugins with matching `matchImages` run, and
 * their answers form one keyring, which matches the keys again (kubernetes
 * pkg/credentialprovider/plugin/plugins.go `Lookup`): a plugin cannot provide a credential for another
 * registry than the image's. Equal keys keep the order of the configuration (Kubernetes 1.34 and later).
 *
 *     source.ts           all providers, their answers in one keyring; live configuration
 *       read-config.ts    provider-config.ts → validate-config.ts, state of the programs
 *       provider.ts       one provider: match, token, cache.ts, single flight, back-off
 *         service-account.ts  token and annotations for `tokenAttributes`
 *         execute.ts      request → run.ts → response
 *           binary.ts     path of the program, and whether it may run
 *           environment.ts  variables
 *
 * Plugins run with the agent's rights. So only the node's own configuration chooses programs, and only
 * programs that only root can write may run. Plugins do not get the agent's environment.
 *
 * A plugin with `tokenAttributes` runs for the pod's service account. Its credentials are marked, because
 * only pods of that account may use them.
 *
 * The configuration is live: if it cannot be used, the last good one stays in force. Unchanged providers keep
 * their cache.
 */
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../../src/async/clock.ts';
import { FairSemaphores } from '../../src/async/fair-semaphore.ts';
import type {
  HeldCredential,
  MatchedCredential,
  ServiceAccountName,
  SourceProblem,
} from '../../src/credentials/credential.ts';
import { hashOf } from '../../src/names/hash.ts';
import { createKeyring, holdEntries } from '../../src/credentials/keyring/keyring.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { bindSourceMetrics } from '../../src/credentials/sources/metrics.ts';
import { liveContent, type LiveContent } from '../../src/files/live.ts';
import type { SourcePart } from '../../src/files/source-part.ts';
import type { WatchOptions } from '../../src/files/watch.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import type { ProviderConfig } from './config/provider-config.ts';
import { readSetup, type PluginSetup, type SetupOptions } from './config/read-config.ts';
import { describeEnvironment, describePlugins } from './describe.ts';
import { bindPluginMetrics, type PluginMeter } from './metrics.ts';
import { Provider } from './provider/provider.ts';
import type { ServiceAccountTokens } from './provider/service-account.ts';
import { kubeletProgram, systemEnvironment } from './run/environment.ts';
import { createExecute } from './run/execute.ts';
import type { RunLimits } from './run/run.ts';

export interface CredentialProviderSourceOptions
  extends Omit<WatchOptions, 'root'>, Omit<SetupOptions, 'hasTokens'> {
  /** Variables for all plugins, in addition to those of the kubelet. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly metrics?: Metrics | undefined;
  readonly limits?: RunLimits | undefined;
  /** For plugins with `tokenAttributes`, which are left out without it. */
  readonly tokens?: ServiceAccountTokens | undefined;
  readonly onClose?: (() => void) | undefined;
}

/** Concurrent runs of one plugin; two for one namespace. Kubelets pull one image at a time by default. */
const runsPerPlugin = 6;

/** Reads the configuration and follows it. Plugins run only for lookups. Must be closed. */
export async function createCredentialProviderSource(
  options: CredentialProviderSourceOptions,
): Promise<LiveCredentialSource> {
  const source = new CredentialProviderSource(options);
  await source.start();
  return source;
}

class CredentialProviderSource implements LiveCredentialSource {
  readonly name = 'credential-provider';
  readonly #options: CredentialProviderSourceOptions;
  readonly #log: Log | undefined;
  readonly #setUsable: ReturnType<typeof bindSourceMetrics>;
  readonly #pluginMeter: PluginMeter;
  readonly #places = new FairSemaphores({ places: runsPerPlugin });
  readonly #stop = new AbortController();
  #live: LiveContent<PluginSetup> | undefined;
  #providers: readonly Provider[] = [];

  constructor(options: CredentialProviderSourceOptions) {
    this.#options = options;
    this.#log = options.log?.child({ credentialSource: this.name });
    this.#setUsable = bindSourceMetrics(options.metrics, this.name);
    this.#pluginMeter = bindPluginMetrics(options.metrics);
  }

  async start(): Promise<void> {
    const { config, binDir, hostRoot, tokens } = this.#options;
    this.#live = await liveContent({
      ...this.#options,
      root: hostRoot,
      dirs: [...new Set([config, binDir])],
      read: () => readSetup({ ...this.#options, hasTokens: tokens !== undefined }),
      fingerprint: ({ id }) => id,
      onChange: (setup) => this.#apply(setup),
      onRead: (setup) => this.#setUsable(setup !== undefined && isComplete(setup)),
      onProblem: ({ message: problem }) =>
        this.#log?.warn({ origin: config, problem }, 'credential provider configuration cannot be used'),
    });
    const first = this.#live.current();
    if (first !== undefined) this.#apply(first);
  }

  async lookup(
    repository: string,
    signal?: AbortSignal,
    account?: ServiceAccountName,
    onProblem?: (problem: SourceProblem) => void,
  ): Promise<readonly MatchedCredential[]> {
    const matching = this.#providers.filter((provider) => provider.matches(repository));
    const found = await Promise.all(
      matching.map((provider) => provide(provider, repository, signal, account)),
    );
    // Without a configuration, any plugin may be for the image.
    const unread = this.#live?.current() === undefined ? this.#configProblems() : [];
    for (const problem of [...unread, ...found.flatMap((each) => each.problem ?? [])]) onProblem?.(problem);
    const held = found.flatMap((each) => each.held);
    return createKeyring(this.name, held).lookup(repository);
  }

  problems(): SourceProblem[] {
    const ofPlugins = this.#providers.flatMap((provider) => {
      const { leftOut, config } = provider;
      if (leftOut !== undefined) return [problemOf(config, leftOut)];
      const failure = provider.lastFailure();
      if (failure === undefined) return [];
      const { image, error } = failure;
      const message = error.message.includes(image) ? error.message : `for image ${image}: ${error.message}`;
      return [problemOf(config, message)];
    });
    return [...this.#configProblems(), ...ofPlugins];
  }

  async describe(): Promise<readonly SourcePart[]> {
    const { config, hostRoot } = this.#options;
    const environment = describeEnvironment(await kubeletProgram(hostRoot));
    return [
      ...describePlugins(config, this.#live?.current(), this.#configProblems()[0]?.message),
      environment,
    ];
  }

  fingerprint(): string {
    return this.#live?.current()?.fingerprint ?? hashOf([this.name]);
  }

  async refresh(): Promise<void> {
    await this.#live?.refresh();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    try {
      await this.#live?.close();
    } finally {
      this.#options.onClose?.();
    }
  }

  /** Makes the providers of a new configuration. Unchanged ones stay, with their caches. */
  #apply({ providers, leftOut }: PluginSetup): void {
    const before = new Map(this.#providers.map((provider) => [provider.config.name, provider]));
    this.#providers = providers.map((config) => {
      const problem = leftOut.get(config.name)?.reason;
      if (problem !== undefined)
        this.#log?.warn({ plugin: config.name, problem }, 'credential provider plugin ignored');
      const reason = problem && `left out: ${problem}`;
      const same = before.get(config.name);
      const isSame = same?.leftOut === reason && isDeepStrictEqual(same?.config, config);
      return same && isSame ? same : this.#provider(config, reason);
    });
  }

  #provider(config: ProviderConfig, leftOut: string | undefined): Provider {
    const { hostRoot, binDir, environment, limits, tokens } = this.#options;
    const execute = createExecute(config, {
      hostRoot,
      binDir,
      places: this.#places,
      stop: this.#stop.signal,
      limits,
      meter: this.#pluginMeter,
      clock: systemClock,
      environment: () => systemEnvironment(hostRoot, environment),
    });
    return new Provider({
      config,
      leftOut,
      clock: systemClock,
      tokens,
      execute,
      onFailure: ({ image, error: { message: problem } }) =>
        this.#log?.warn({ plugin: config.name, image, problem }, 'credential provider plugin failed'),
    });
  }

  #configProblems(): readonly SourceProblem[] {
    const failure = this.#live?.problem();
    if (failure === undefined) return [];
    const consequence = this.#live?.current() === undefined ? '' : '; the last good one stays in force';
    const message = `${failure.message}${consequence}`;
    return [{ source: this.name, origin: this.#options.config, message }];
  }
}

/** A plugin without tokens may be intended, so it does not make the setup incomplete. */
function isComplete({ leftOut }: PluginSetup): boolean {
  return [...leftOut.values()].every(({ code }) => code === 'no-token');
}

/**
 * The credentials of a provider for a repository, marked if they depend on the pod's service account, and why
 * they cannot be used.
 */
async function provide(
  provider: Provider,
  repository: string,
  signal: AbortSignal | undefined,
  account: ServiceAccountName | undefined,
): Promise<{ readonly held: readonly HeldCredential[]; readonly problem: SourceProblem | undefined }> {
  const origin = originOf(provider.config.name);
  const pod = account && { namespace: account.namespace, serviceAccountName: account.name };
  const { auth, reason } = await provider.provide(repository, pod, signal);
  const problem = reason === undefined ? undefined : problemOf(provider.config, reason);
  if (!needsToken(provider)) return { held: holdEntries(auth, origin).held, problem };
  const { held } = holdEntries(auth, account ? `${origin} for ${account.namespace}/${account.name}` : origin);
  return { held: held.map((each) => ({ ...each, source: 'service-account' })), problem };
}

function needsToken({ config }: Provider): boolean {
  return config.tokenAttributes !== undefined;
}

function problemOf({ name }: ProviderConfig, message: string): SourceProblem {
  return { source: 'credential-provider', origin: originOf(name), message };
}

function originOf(plugin: string): string {
  return `plugin ${plugin}`;
}
