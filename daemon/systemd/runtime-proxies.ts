/**
 * The proxy variables of the node's container runtime: of the running process if it may be read, else of its
 * systemd service. An agent reaches registries in the same way as the runtime pulls, unless it has proxy
 * variables of its own.
 */
import type { Problem } from '../../src/credentials/credential.ts';
import { textFingerprint } from '../../src/credentials/identity.ts';
import { liveContent, type WatchOptions } from '../../src/files/live.ts';
import { leftOut, part, type SourcePart } from '../../src/files/source-part.ts';
import { describeProxies, proxyVariables, type Environment } from '../../src/http/proxy/proxy.ts';
import { nodeProgram, servicesOf } from '../kubelet/run/environment.ts';
import type { RuntimeName } from '../../src/nodes/node-report.ts';

export interface RuntimeProxiesOptions extends Omit<WatchOptions, 'root'> {
  readonly hostRoot: string;
  /** The node may also have other runtimes. */
  readonly runtime: RuntimeName;
  /** Environment of this process. */
  readonly own: Environment;
}

export const containerdServices = servicesOf('containerd', 'containerd');
const programs: Readonly<Record<RuntimeName, string>> = { containerd: 'containerd', 'cri-o': 'crio' };

/** A runtime has other variables only after a restart, so there is no hurry. */
const defaultPollMs = 60_000;

interface Found {
  readonly origin: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly problems: readonly Problem[];
  readonly fingerprint: string;
}

export async function openRuntimeProxies(options: RuntimeProxiesOptions) {
  const { hostRoot, runtime, own, log, pollMs = defaultPollMs } = options;
  /** The variables of this process, with the runtime's proxies. It is read for each request. */
  const environment: Record<string, string | undefined> = { ...own };
  const apply = ({ variables, problems, origin }: Found): void => {
    for (const name of proxyVariables) environment[name] = variables[name];
    const names = Object.keys(variables);
    if (names.length > 0)
      log?.info({ origin, variables: names }, 'the proxies of the container runtime are used');
    for (const { origin: file, message: problem } of problems)
      log?.warn({ origin: file, problem }, 'a file of the container runtime’s service is left out');
  };
  const hasOwn = proxyVariables.some((name) => own[name]);
  const live = hasOwn
    ? undefined
    : await liveContent<Found>({
        ...options,
        pollMs,
        root: hostRoot,
        dirs: ['/etc/systemd/system', `/etc/systemd/system/${programs[runtime]}.service.d`],
        read: () => readProxies(hostRoot, runtime),
        fingerprint: ({ fingerprint, problems }) => JSON.stringify([fingerprint, problems]),
        onChange: apply,
        onProblem: (error) =>
          log?.warn({ err: error }, 'reading the proxy variables of the container runtime failed'),
      });
  const first = live?.current();
  if (first) apply(first);
  return {
    environment: environment as Environment,
    fingerprint: (): string | undefined => {
      const { variables = {}, fingerprint } = live?.current() ?? {};
      return Object.keys(variables).length > 0 ? fingerprint : undefined;
    },
    describe: (): readonly SourcePart[] => {
      const { origin, problems = [] } = live?.current() ?? {};
      const failure = live?.problem();
      return [
        ...describeProxies(environment, origin),
        ...leftOut(problems),
        ...(failure ? [part('proxies', 'left-out', failure.message)] : []),
      ];
    },
    refresh: async (): Promise<void> => live?.refresh(),
    close: async (): Promise<void> => live?.close(),
  };
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
