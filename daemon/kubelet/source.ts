/**
 * The credential provider plugins of this node as a credential source. As in the kubelet, all plugins whose `matchImages` match are
 * asked, and their answers go into one keyring, where the keys that they gave are matched once more (kubernetes
 * pkg/credentialprovider/plugin/plugins.go `Lookup`): a plugin cannot bring in a credential for another registry than the image's.
 * Among equal keys, providers count in the order of the configuration (Kubernetes 1.34 and later).
 *
 * A plugin with `tokenAttributes` is asked in the name of the pod's service account; what it gives is told apart from what the
 * node itself has, because it is for pods of that account only.
 *
 * The configuration is live: one that cannot be used leaves the last good one in force. Providers that did not change keep
 * what they remember.
 */
import { isDeepStrictEqual } from 'node:util';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { combineFingerprints, textFingerprint } from '../../src/credentials/identity.ts';
import { createKeyring, holdEntries, type HeldCredential } from '../../src/credentials/keyring/keyring.ts';
import type { ServiceAccountName } from '../../src/credentials/service-account.ts';
import { bindSourceMetrics } from '../../src/credentials/sources/metrics.ts';
import { liveContent } from '../../src/files/live.ts';
import type { WatchOptions } from '../../src/files/watch.ts';
import { createHostSemaphore } from '../../src/async/semaphore.ts';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { checkBinary } from './run/binary.ts';
import { describeEnvironment, describePlugins, type LeftOut, type PluginsFound } from './describe.ts';
import { systemEnvironment } from './run/environment.ts';
import { createExecute } from './run/execute.ts';
import { kubeletVariables } from './run/kubelet-process.ts';
import { bindPluginMetrics } from './metrics.ts';
import type { Failure } from './provider/back-off.ts';
import { PluginError } from './run/plugin-error.ts';
import { ProviderConfigError, type ProviderConfig } from './config/provider-config.ts';
import { createProvider, tokenReason, type Provider } from './provider/provider.ts';
import { readConfig } from './config/read-config.ts';
import type { RunLimits } from './run/run.ts';
import type { ServiceAccountTokens } from './provider/service-account.ts';
import { validateConfig } from './config/validate-config.ts';

export interface CredentialProviderSourceOptions extends Omit<WatchOptions, 'root'> {
  /** Directory that stands for `/`; plugins run in it. */
  readonly hostRoot: string;
  /** A file or a directory, inside the host root. */
  readonly config: string;
  /** Directory of the plugins, inside the host root. */
  readonly binDir: string;
  /** Variables for all plugins, besides those of the kubelet. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly clock?: Clock | undefined;
  readonly metrics?: Metrics | undefined;
  readonly limits?: RunLimits | undefined;
  /** For plugins with `tokenAttributes`; without it they are left out. */
  readonly tokens?: ServiceAccountTokens | undefined;
  /** Why there are no tokens, for people. */
  readonly noTokens?: string | undefined;
}

/** Runs of one plugin at a time. A kubelet pulls one image after the other by default; an agent looks at several. */
const runsPerPlugin = 4;

const name = 'credential-provider';

interface Setup extends PluginsFound {
  /** Equal for equal content and equally usable programs. */
  readonly id: string;
  readonly fingerprint: string;
}

/** Reads the configuration once and then keeps up with it; runs nothing before it is asked. Close it in the end. */
export async function createCredentialProviderSource(
  options: CredentialProviderSourceOptions,
): Promise<LiveCredentialSource> {
  const { hostRoot, config: path, binDir, clock = systemClock } = options;
  const log = options.log?.child({ credentialSource: name });
  const gate = createHostSemaphore(runsPerPlugin);
  const meter = bindSourceMetrics(options.metrics, name);
  const plugins = bindPluginMetrics(options.metrics);
  const stop = new AbortController();
  let providers: readonly Provider[] = [];

  async function read(): Promise<Setup> {
    const { providers: configs, hash, isDirectory } = await readConfig(path, hostRoot);
    const verdict = validateConfig(configs);
    if (verdict !== undefined) {
      throw new ProviderConfigError(
        'invalid',
        path,
        `failed to validate credential provider config: ${verdict}`,
      );
    }
    const leftOut = new Map<string, LeftOut>();
    const states: string[] = [];
    for (const config of configs) {
      const problem = await binaryProblem(config);
      if (problem !== undefined) leftOut.set(config.name, { code: problem.code, reason: problem.message });
      else if (config.tokenAttributes !== undefined && options.tokens === undefined) {
        const why = options.noTokens === undefined ? '' : ` (${options.noTokens})`;
        leftOut.set(config.name, { code: 'no-token', reason: tokenReason + why });
      }
      states.push(leftOut.get(config.name)?.code ?? 'usable');
    }
    const id = JSON.stringify([hash, states]);
    return { providers: configs, isDirectory, leftOut, id, fingerprint: await textFingerprint(name, id) };
  }

  async function binaryProblem(config: ProviderConfig): Promise<PluginError | undefined> {
    try {
      await checkBinary(config.name, { hostRoot, binDir });
      return undefined;
    } catch (error) {
      if (error instanceof PluginError) return error;
      throw error;
    }
  }

  /** Makes the providers of a new configuration; one that is the same as before stays, with all that it remembers. */
  function take({ providers: configs, leftOut }: Setup): void {
    const before = new Map(providers.map((provider) => [provider.config.name, provider]));
    providers = configs.flatMap((config) => {
      const reason = leftOut.get(config.name)?.reason;
      if (reason !== undefined) {
        log?.warn({ plugin: config.name, problem: reason }, 'credential provider plugin is left out');
        return [];
      }
      const same = before.get(config.name);
      return [same !== undefined && isDeepStrictEqual(same.config, config) ? same : open(config)];
    });
  }

  function open(config: ProviderConfig): Provider {
    return createProvider({
      config,
      clock,
      tokens: options.tokens,
      execute: createExecute(config, {
        hostRoot,
        binDir,
        gate,
        stop: stop.signal,
        limits: options.limits,
        meter: plugins,
        environment: () => systemEnvironment({ hostRoot, extra: options.environment }),
      }),
      onFailure: ({ image, error }) =>
        log?.warn(
          { plugin: config.name, image, problem: error.message },
          'credential provider plugin failed',
        ),
    });
  }

  const live = await liveContent({
    ...options,
    root: hostRoot,
    dirs: [...new Set([path, binDir])],
    read,
    fingerprint: ({ id }) => id,
    onChange: take,
    onRead: (setup) => meter.read(setup !== undefined && isWhole(setup)),
    onProblem: (error) =>
      log?.warn({ origin: path, problem: error.message }, 'credential provider configuration cannot be used'),
  });
  const first = live.current();
  if (first !== undefined) take(first);

  function configProblem(): string | undefined {
    const failure = live.problem();
    const consequence = live.current() === undefined ? '' : '; the last good one stays in force';
    return failure && `${failure.message}${consequence}`;
  }

  function problems(): SourceProblem[] {
    const config = configProblem();
    return [
      ...(config === undefined ? [] : [problem(path, config)]),
      ...[...(live.current()?.leftOut ?? [])].map(([plugin, { reason }]) =>
        problem(originOf(plugin), `left out: ${reason}`),
      ),
      ...providers.flatMap((provider) => {
        const failure = provider.lastFailure();
        return failure === undefined ? [] : [problem(originOf(provider.config.name), describe(failure))];
      }),
    ];
  }

  return {
    name,
    async lookup(repository, signal, account) {
      const asked = providers.filter((provider) => provider.isFor(repository));
      const held = await Promise.all(asked.map((provider) => heldBy(provider, repository, signal, account)));
      return createKeyring(name, held.flat()).lookup(repository);
    },
    dependsOnServiceAccount: (repository) =>
      providers.some((provider) => takesToken(provider) && provider.isFor(repository)),
    problems,
    async describe() {
      const environment = describeEnvironment((await kubeletVariables(hostRoot)) !== undefined);
      return [...describePlugins(path, live.current(), configProblem()), environment];
    },
    fingerprint: () => live.current()?.fingerprint ?? combineFingerprints([name]),
    refresh: () => live.refresh(),
    async close() {
      stop.abort();
      await live.close();
    },
  };
}

/** What a provider has for a repository; what depends on the pod's service account is marked as such. */
async function heldBy(
  provider: Provider,
  repository: string,
  signal: AbortSignal | undefined,
  account: ServiceAccountName | undefined,
): Promise<readonly HeldCredential[]> {
  const origin = originOf(provider.config.name);
  if (!takesToken(provider)) {
    return holdEntries((await provider.provide(repository, undefined, signal)).auth, origin).held;
  }
  const pod = account && { namespace: account.namespace, serviceAccountName: account.name };
  const { auth } = await provider.provide(repository, pod, signal);
  const { held } = holdEntries(auth, account ? `${origin} for ${account.namespace}/${account.name}` : origin);
  return held.map((each) => ({ ...each, source: 'service-account' }));
}

function takesToken({ config }: Provider): boolean {
  return config.tokenAttributes !== undefined;
}

/** What takes a token of a pod may be left out on purpose; then nothing is broken. */
function isWhole({ leftOut }: PluginsFound): boolean {
  return [...leftOut.values()].every(({ code }) => code === 'no-token');
}

function originOf(plugin: string): string {
  return `plugin ${plugin}`;
}

function problem(origin: string, message: string): SourceProblem {
  return { source: name, origin, message };
}

function describe({ image, error }: Failure): string {
  return error.message.includes(image) ? error.message : `for image ${image}: ${error.message}`;
}
