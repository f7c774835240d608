/**
 * The proxy variables of the node's container runtime: of the running process if it may be read, else of its
 * systemd service. An agent reaches registries in the same way as the runtime pulls, unless it has proxy
 * variables of its own.
 */
import type { Problem } from '../../src/credentials/credential.ts';
import { textFingerprint } from '../../src/credentials/identity.ts';
import { liveContent, type LiveContent, type WatchOptions } from '../../src/files/live.ts';
import { leftOut, part, type SourcePart } from '../../src/files/source-part.ts';
import { describeProxies, proxyVariables, type Environment } from '../../src/http/proxy/proxy.ts';
import { nodeProgram } from '../kubelet/run/environment.ts';
import type { RuntimeName } from '../../src/nodes/node-report.ts';

export interface RuntimeProxiesOptions extends Omit<WatchOptions, 'root'> {
  readonly hostRoot: string;
  /** The node may also have other runtimes. */
  readonly runtime: RuntimeName;
  /** Environment of this process. */
  readonly own: Environment;
}

/** Services that run or contain containerd, those of distributions first. */
export const containerdServices = [
  'k3s.service',
  'k3s-agent.service',
  'rke2-server.service',
  'rke2-agent.service',
  'snap.microk8s.daemon-containerd.service',
  'k0scontroller.service',
  'k0sworker.service',
  'containerd.service',
];
const programs: Readonly<Record<RuntimeName, string>> = { containerd: 'containerd', 'cri-o': 'crio' };

/** A runtime has other variables only after a restart, so there is no hurry. */
const defaultPollMs = 60_000;

interface Found {
  readonly origin: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly problems: readonly Problem[];
  readonly fingerprint: string;
}

export async function openRuntimeProxies(options: RuntimeProxiesOptions): Promise<RuntimeProxies> {
  const proxies = new RuntimeProxies(options);
  await proxies.start();
  return proxies;
}

export class RuntimeProxies {
  readonly #options: RuntimeProxiesOptions;
  readonly #hasOwn: boolean;
  /** Read for each request, so it is changed in place. */
  readonly #environment: Record<string, string | undefined>;
  #live: LiveContent<Found> | undefined;

  constructor(options: RuntimeProxiesOptions) {
    this.#options = options;
    this.#hasOwn = proxyVariables.some((name) => options.own[name]);
    this.#environment = { ...options.own };
  }

  /** The variables of this process, with the runtime's proxies. */
  get environment(): Environment {
    return this.#environment;
  }

  async start(): Promise<void> {
    if (this.#hasOwn) return;
    const { hostRoot, runtime, log, pollMs = defaultPollMs } = this.#options;
    this.#live = await liveContent<Found>({
      ...this.#options,
      pollMs,
      root: hostRoot,
      dirs: ['/etc/systemd/system', `/etc/systemd/system/${programs[runtime]}.service.d`],
      read: () => readProxies(hostRoot, runtime),
      fingerprint: ({ fingerprint, problems }) => JSON.stringify([fingerprint, problems]),
      onChange: (found) => this.#apply(found),
      onProblem: (error) =>
        log?.warn({ err: error }, 'reading the proxy variables of the container runtime failed'),
    });
    const first = this.#live.current();
    if (first) this.#apply(first);
  }

  fingerprint(): string | undefined {
    const found = this.#live?.current();
    return found && Object.keys(found.variables).length > 0 ? found.fingerprint : undefined;
  }

  describe(): readonly SourcePart[] {
    const found = this.#live?.current();
    const failure = this.#live?.problem();
    return [
      ...describeProxies(this.#environment, found?.origin),
      ...leftOut(found?.problems ?? []),
      ...(failure ? [part('proxies', 'left-out', failure.message)] : []),
    ];
  }

  async refresh(): Promise<void> {
    await this.#live?.refresh();
  }

  async close(): Promise<void> {
    await this.#live?.close();
  }

  #apply({ variables, problems, origin }: Found): void {
    for (const name of proxyVariables) this.#environment[name] = variables[name];
    const { log } = this.#options;
    const names = Object.keys(variables);
    if (names.length > 0)
      log?.info({ origin, variables: names }, 'the proxies of the container runtime are used');
    for (const problem of problems) {
      log?.warn(
        { origin: problem.origin, problem: problem.message },
        'a file of the container runtime’s service is left out',
      );
    }
  }
}

async function readProxies(hostRoot: string, runtime: RuntimeName): Promise<Found> {
  const services = runtime === 'containerd' ? containerdServices : ['crio.service'];
  const found = await nodeProgram(hostRoot, new Set([programs[runtime]]), services);
  const { variables: all } = found;
  // k3s and RKE2 give containerd the variables with this prefix (k3s pkg/agent/containerd).
  const chosen = proxyVariables.flatMap((name) => {
    const value = all[`CONTAINERD_${name}`] ?? all[name];
    return value ? [[name, value] as const] : [];
  });
  return {
    origin: found.isRunning ? 'the running container runtime' : (found.service ?? 'a service'),
    variables: Object.fromEntries(chosen),
    problems: found.problems,
    fingerprint: await textFingerprint('containerd', JSON.stringify(chosen)),
  };
}
