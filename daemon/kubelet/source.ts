/**
 * The credential provider plugins of this node as a credential source (KEP-2133, KEP-4412). As in the kubelet,
 * all plugins with matching `matchImages` run, and their answers form one keyring, which matches the keys again
 * (kubernetes pkg/credentialprovider/plugin/plugins.go `Lookup`): a plugin cannot provide a credential for
 * another registry than the image's. Equal keys keep the order of the configuration (since Kubernetes 1.34).
 *
 * Plugins run with the agent's rights, but without its environment. So only the node's own configuration
 * chooses programs, and only programs that nobody but root can write may run.
 *
 * A plugin with `tokenAttributes` runs for the pod's service account; only pods of that account may use its
 * credentials, which are marked.
 *
 * An unusable configuration leaves the last good one in force. Unchanged providers keep their cache.
 */
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../../src/async/clock.ts';
import { FairSemaphores } from '../../src/async/fair-semaphore.ts';
import type {
  MatchedCredential,
  ServiceAccountName,
  SourceProblem,
} from '../../src/credentials/credential.ts';
import { createKeyring, holdEntries } from '../../src/credentials/keyring/keyring.ts';
import {
  LiveSource,
  type LiveCredentialSource,
  type Reading,
} from '../../src/credentials/sources/file-source.ts';
import { part, type SourcePart } from '../../src/files/source-part.ts';
import type { WatchOptions } from '../../src/files/live.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { ProviderConfigError, readSetup, type Plugin, type SetupOptions } from './config/read-config.ts';
import { bindPluginMetrics, type PluginErrorCode, type PluginMeter } from './run/plugin-error.ts';
import { Provider } from './provider/provider.ts';
import type { ServiceAccountTokens } from './provider/service-account.ts';
import { kubeletProgram, pluginEnvironment, type NodeProgram } from './run/environment.ts';
import { createExecute } from './run/execute.ts';

export interface CredentialProviderSourceOptions extends Omit<WatchOptions, 'root'>, SetupOptions {
  /** Variables for all plugins, in addition to those of the kubelet. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly metrics?: Metrics | undefined;
  /** Plugins with `tokenAttributes` need them, and are left out otherwise. */
  readonly tokens?: ServiceAccountTokens | undefined;
  readonly onClose?: (() => void) | undefined;
}

interface Found {
  /** The last usable configuration. */
  readonly setup: readonly Plugin[] | undefined;
  readonly providers: readonly Provider[];
}

/** Concurrent runs of one plugin; two for one namespace. Kubelets pull one image at a time by default. */
const runsPerPlugin = 6;

/** Reads the configuration and follows it. Plugins run only for lookups. Must be closed. */
export async function createCredentialProviderSource(
  options: CredentialProviderSourceOptions,
): Promise<LiveCredentialSource> {
  return await new CredentialProviderSource(options).start();
}

class CredentialProviderSource extends LiveSource<Found> {
  readonly #options: CredentialProviderSourceOptions;
  readonly #meter: PluginMeter;
  readonly #places = new FairSemaphores({ places: runsPerPlugin });

  constructor(options: CredentialProviderSourceOptions) {
    const { config, binDir, hostRoot } = options;
    super({
      ...options,
      root: hostRoot,
      name: 'credential-provider',
      dirs: [...new Set([config, binDir])],
      initial: { setup: undefined, providers: [] },
      problemText: 'some credential provider plugins are not used',
    });
    this.#options = options;
    this.#meter = bindPluginMetrics(options.metrics);
  }

  override async lookup(
    repository: string,
    signal?: AbortSignal,
    account?: ServiceAccountName,
    onProblem?: (problem: SourceProblem) => void,
  ): Promise<readonly MatchedCredential[]> {
    const { setup, providers } = this.found;
    const matching = providers.filter((provider) => provider.matches(repository));
    const found = await Promise.all(matching.map((each) => provide(each, repository, signal, account)));
    // Without a configuration, any plugin may be for the image.
    const unread = setup === undefined ? super.problems() : [];
    for (const problem of [...unread, ...found.flatMap((each) => each.problem ?? [])]) onProblem?.(problem);
    const held = found.flatMap((each) => each.held);
    return createKeyring(this.name, held).lookup(repository);
  }

  override problems(): readonly SourceProblem[] {
    const { providers } = this.found;
    const failures = providers.flatMap((provider) => {
      const failure = provider.lastFailure();
      if (failure === undefined) return [];
      const { message } = failure.error;
      const where = message.includes(failure.image) ? '' : `for image ${failure.image}: `;
      return problemOf(provider, where + message);
    });
    return [...super.problems(), ...leftOutOf(providers, true), ...failures];
  }

  async describe(): Promise<readonly SourcePart[]> {
    const { config, hostRoot } = this.#options;
    const { setup = [] } = this.found;
    const problem = this.failure() ?? super.problems().find(({ origin }) => origin === config);
    const whole = problem
      ? part(config, 'left-out', problem.message, [noStart])
      : part(config, 'used', `plugins: ${setup.length}`, [atStart]);
    return [whole, ...setup.map(describePlugin), describeEnvironment(await kubeletProgram(hostRoot))];
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      this.#options.onClose?.();
    }
  }

  protected async read(): Promise<Reading<Found>> {
    const { config } = this.#options;
    const before = this.found;
    try {
      const setup = await readSetup(this.#options);
      const providers = setup.map((plugin) => this.#providerOf(plugin));
      return {
        found: { setup, providers },
        problems: leftOutOf(providers, false),
        content: contentOf(setup),
      };
    } catch (error) {
      if (!(error instanceof ProviderConfigError)) throw error;
      const consequence = before.setup === undefined ? '' : '; the last good one stays in force';
      const problem = { origin: config, message: `${error.message}${consequence}` };
      const problems = [problem, ...leftOutOf(before.providers, false)];
      return { found: before, problems, content: contentOf(before.setup) };
    }
  }

  /** Unchanged providers stay, with their caches. */
  #providerOf(plugin: Plugin): Provider {
    const { config, leftOut } = plugin;
    const { hostRoot, binDir, environment, tokens, log } = this.#options;
    const same = this.found.providers.find(
      (before) => isDeepStrictEqual(before.config, config) && isDeepStrictEqual(before.leftOut, leftOut),
    );
    if (same !== undefined) return same;
    if (leftOut?.code === 'no-token')
      log?.warn({ plugin: config.name, problem: leftOut.reason }, 'credential provider plugin ignored');
    const execute = createExecute(config, {
      hostRoot,
      binDir,
      places: this.#places,
      stop: this.closing,
      meter: this.#meter,
      environment: async () => {
        const { variables } = await kubeletProgram(hostRoot);
        return pluginEnvironment(variables, environment, config.env);
      },
    });
    return new Provider({
      ...plugin,
      clock: systemClock,
      tokens,
      execute,
      onFailure: ({ image, error: { message: problem } }) =>
        log?.warn({ plugin: config.name, image, problem }, 'credential provider plugin failed'),
    });
  }
}

/** Equal for an equal configuration and equally usable programs. */
function contentOf(setup: readonly Plugin[] | undefined): string {
  return setup ? JSON.stringify(setup.map(({ config, leftOut }) => [config, leftOut?.code])) : '';
}

/** Plugins that do not run. Without a token it may be intended, so the source does not count as broken. */
function leftOutOf(providers: readonly Provider[], isIntended: boolean): readonly SourceProblem[] {
  return providers.flatMap(({ config, leftOut }) =>
    leftOut !== undefined && (leftOut.code === 'no-token') === isIntended
      ? [problemOf({ config }, `left out: ${leftOut.reason}`)]
      : [],
  );
}

/**
 * The credentials of a provider for a repository, marked if they depend on the pod's service account, and why
 * they cannot be used.
 */
async function provide(
  provider: Provider,
  repository: string,
  signal?: AbortSignal,
  account?: ServiceAccountName,
) {
  const { auth, reason } = await provider.provide(repository, account, signal);
  const problem = reason === undefined ? undefined : problemOf(provider, reason);
  const origin = originOf(provider);
  if (provider.config.tokenAttributes === undefined) return { held: holdEntries(auth, origin).held, problem };
  const { held } = holdEntries(auth, account ? `${origin} for ${account.namespace}/${account.name}` : origin);
  return { held: held.map((each) => ({ ...each, source: 'service-account' as const })), problem };
}

function problemOf(plugin: Plugin, message: string): SourceProblem {
  return { source: 'credential-provider', origin: originOf(plugin), message };
}

function originOf({ config }: Plugin): string {
  return `plugin ${config.name}`;
}

// For people, with the differences from a kubelet since 1.34.

const atStart = 'the kubelet reads it only when it starts; archwright uses a change at once';
const noStart = 'a kubelet does not start with this';

type Kubelet = Pick<NodeProgram, 'isRunning' | 'service'>;

export function describeEnvironment({ isRunning, service }: Kubelet): SourcePart {
  const where = 'environment of plugins';
  if (isRunning) return part(where, 'used', 'the variables of the running kubelet');
  if (service !== undefined)
    return part(where, 'used', `HOME, PATH, the variables of ${service}, and kubeletEnvironment`);
  const what =
    'the variables of the running kubelet cannot be read; plugins have HOME, PATH and kubeletEnvironment';
  return part(where, 'absent', what, [
    'the kubelet gives plugins its own variables; set those that they need in kubeletEnvironment',
  ]);
}

function describePlugin({ config: { name, matchImages, tokenAttributes }, leftOut }: Plugin): SourcePart {
  const where = `plugin ${name}`;
  if (leftOut === undefined) {
    const what = `for ${matchImages.join(', ')}`;
    if (tokenAttributes === undefined) return part(where, 'used', what);
    return part(where, 'used', `${what}, with a token of the pod’s service account`, [
      'the kubelet’s tokens are bound to a pod, the agent’s only to the service account',
    ]);
  }
  return part(where, 'left-out', leftOut.reason, [whatKubeletDoes(leftOut.code)]);
}

function whatKubeletDoes(code: PluginErrorCode): string {
  if (code === 'no-token') return 'the kubelet runs it with a token of the pod’s service account';
  return code === 'unsafe' ? 'the kubelet runs it' : noStart;
}
