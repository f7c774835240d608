/** `archwright agent`: runs the node agent. With `--check`, prints what an agent would find on this node. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/async/clock.ts';
import { aborted } from '../src/async/wait.ts';
import { architectureOf, startAgent } from '../daemon/agent.ts';
import { AgentCertificate, type AgentCertificateOptions } from '../daemon/certificate/certificate.ts';
import { readMachine } from '../daemon/machine/machine.ts';
import { startTracing } from '../daemon/tracing/tracing.ts';
import { checkNode } from './agent/check.ts';
import type { Configuration } from '../src/policy/configuration/configuration.ts';
import { openInspection } from './wiring/inspection.ts';
import { openFactsCache } from './wiring/image-facts.ts';
import { openKubernetes } from './wiring/kubernetes.ts';
import { close, startup, untilStopped } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice, text, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { programVersion } from './program/version.ts';

/** The chart mounts the node's instances of tracefs here, or an empty directory. */
const tracingInstances = '/run/archwright/tracing';

const ownFlags = {
  agentAuthorityDir: text(
    'DIRECTORY',
    'Directory with `ca.crt`, and a `tls.crt` from the CA that signs now. The agent then requests its certificate from the cluster and writes it to `--tls-dir`.',
  ),
  nodeName: text('NAME', 'Name of the node. Default: the host name.'),
  metricsTls: toggle('Serves metrics and health over TLS, with the certificate in `--tls-dir`.'),
  check: toggle('Shows what an agent with these settings finds on this node, and exits.'),
  output: choice(['list', 'json'], 'Output format of `--check`.', { short: 'o' }),
};

export const subcommand: Subcommand<typeof ownFlags> = {
  usage: '[FLAGS]',
  description:
    'Inspects images for the webhook and the controller, with the credentials and the network of its ' +
    'node. Requires `--tls-dir`, a directory with `tls.crt` and `tls.key` for the name archwright-agent, ' +
    'and `ca.crt`. With `--agent-authority-dir` the directory may be empty. Exit code of `--check`: 0 if ' +
    'everything can be used, 1 if something is left out, 2 for wrong usage.',
  settings: 'agent',
  flags: ownFlags,
  run: async (invocation) => {
    if (invocation.flags.check) return untilStopped(checkNode)(invocation);
    if (invocation.given.has('output')) throw new UsageError('--output needs --check');
    return run(invocation);
  },
};

/** Images that are looked up at the same time. One busy namespace gets a third. */
const concurrentLookups = 128;

async function run(invocation: Invocation<typeof ownFlags>): Promise<number> {
  const { flags, stop } = invocation;
  await using opened = new AsyncDisposableStack();
  const context = await startup(invocation, opened);
  const { configuration, env, log, metrics } = context;
  const { tlsDir, stateDir, hostRoot, ...first } = configuration();
  if (tlsDir === undefined) {
    throw new UsageError('name the directory with tls.crt, tls.key and ca.crt by --tls-dir');
  }
  const inspection = opened.adopt(await openInspection({ ...context, dockerConfigs: 'node' }), close);
  const { agentAuthorityDir: authorityDir, nodeName = hostname() } = flags;
  const own = authorityDir && { node: nodeName, dir: tlsDir, authorityDir, log };
  const certificate = own && (await openCertificate(configuration(), env, own, opened));
  const machine = await readMachine(architectureOf(process.arch));
  const source = inspection.source;
  const opening = openFactsCache({ ...context, source, stateDir, concurrentLookups });
  const cache = opened.adopt(await opening, close);
  const tracing = first.execFormatErrorTracing
    ? opened.adopt(await startTracing(tracingInstances, join(hostRoot, 'proc'), systemClock, log), close)
    : undefined;
  const starting = startAgent({
    listen: first.listen,
    metricsListen: first.metricsListen,
    metricsTlsDir: flags.metricsTls ? tlsDir : undefined,
    tlsDir,
    nodeName,
    version: programVersion.version,
    cache,
    fingerprint: () => inspection.fingerprint(),
    node: () => ({ ...inspection.runtime(), ...machine }),
    problems: () => inspection.problems(),
    dockerHubLimit: () => inspection.dockerHubLimit(),
    execErrors: tracing && (() => tracing.report()),
    ...(certificate && { certificate: () => certificate.ready(stop) }),
    log,
    metrics,
  });
  const agent = await starting.catch((error: unknown) => {
    if (!stop.aborted) throw error;
  });
  if (agent === undefined) return exitCodes.success;
  await aborted(stop);
  await agent.stop(configuration().drainTime);
  return exitCodes.success;
}

/** The agent's own certificate, by the API server. @param opened closes what this opens */
async function openCertificate(
  configuration: Configuration,
  env: Invocation['io']['env'],
  options: Omit<AgentCertificateOptions, 'client' | 'clock'>,
  opened: AsyncDisposableStack,
): Promise<AgentCertificate> {
  const kubernetes = await openKubernetes(configuration, env, 'none');
  if (!kubernetes) {
    throw new UsageError('--agent-authority-dir needs a cluster: run in a pod, or name one by --kubeconfig');
  }
  const client = opened.adopt(kubernetes.client, close);
  return opened.adopt(new AgentCertificate({ ...options, client, clock: systemClock }), close);
}
