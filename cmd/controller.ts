/** `archwright controller`: runs the controller. */
import { text, value, withDefault } from './program/flag.ts';
import { ownNames } from '../src/names/keys.ts';
import { listenAddress } from '../src/policy/value-kinds/addresses.ts';
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { runController, type ControllerOptions } from '../src/controller/controller.ts';
import { features } from '../src/controller/features.ts';
import { startHealth } from '../src/serving/health.ts';
import { systemClock } from '../src/async/clock.ts';
import { aborted } from '../src/async/wait.ts';
import { openImageFacts } from './wiring/image-facts.ts';
import { openKubernetes, withOwnNamespace } from './wiring/kubernetes.ts';
import { close, startup } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';

const ownFlags = {
  agentServiceAccount: withDefault(
    text('NAME', 'Service account of the agents. Its pods get certificates for their nodes.'),
    'archwright-agent',
  ),
  factsListen: value(
    listenAddress,
    'Address and port for requests of `explain` and `report`, which arrive through the API server. Default: none.',
  ),
  webhooksFile: text(
    'PATH',
    'YAML file with the list `webhooks` of the MutatingWebhookConfiguration, without `caBundle`.',
  ),
};

export const subcommand: Subcommand<typeof ownFlags> = {
  usage: '[FLAGS]',
  description:
    'Decides gated pods, evicts misplaced pods, sets taints, issues certificates and maintains the webhook ' +
    'configuration. Runs in a pod, or with `--kubeconfig` and `--namespace`. One of several replicas leads. With `--agents`, ' +
    'the node agents inspect images; otherwise the controller does.',
  settings: 'controller',
  flags: ownFlags,
  run: (invocation) => runWith(invocation),
};

/** Only tests change these: features, times and rates. */
export type Hooks = Partial<Pick<ControllerOptions, 'features' | 'leaseTimes' | 'writes'>>;

export async function runWith(invocation: Invocation<typeof ownFlags>, hooks: Hooks = {}): Promise<number> {
  await using opened = new AsyncDisposableStack();
  const context = await startup(invocation, opened);
  const { env, log, metrics } = context;
  const { stop, flags } = invocation;
  const kubernetes = await openKubernetes(context.configuration(), env, 'none', metrics);
  if (!kubernetes) throw new UsageError('run it in a pod, or select a cluster with --kubeconfig');
  const client = opened.adopt(kubernetes.client, close);
  const leaseClient = opened.adopt(kubernetes.another(), close);
  const configuration = withOwnNamespace(context.configuration, kubernetes);
  const { namespace, metricsListen } = configuration();
  if (namespace === undefined) throw new UsageError('set the namespace of archwright with --namespace');
  const name = ownNames(configuration()).controllerClientTlsSecret;
  const clientSecret = { client, namespace, name, clock: systemClock, log };
  const { cache, requestOf, fleet } = await openImageFacts(
    { ...context, configuration, dockerConfigs: 'none', client, clientSecret },
    opened,
  );
  const health = await startHealth({
    listen: metricsListen,
    // A candidate is ready too: a rollout must not wait for leadership.
    ready: { shutdown: () => (stop.aborted ? 'the controller is stopping' : undefined) },
    metrics,
    log,
  });
  opened.defer(() => health.drain(0));
  const identity = `${env['HOSTNAME'] ?? hostname()}_${randomBytes(4).toString('hex')}`;
  log.info(
    { health: health.url, cluster: kubernetes.access.description, namespace, identity },
    'the controller is running',
  );
  await runController({
    client,
    leaseClient,
    namespace,
    identity,
    configuration,
    features,
    agentServiceAccount: flags.agentServiceAccount,
    factsListen: flags.factsListen,
    webhooksFile: flags.webhooksFile,
    fleet,
    cache,
    requestOf,
    clock: systemClock,
    log,
    metrics,
    stop,
    ...hooks,
  });
  // The controller idles after `archwright clean`. If it exited, the kubelet would only restart it.
  await aborted(stop);
  return exitCodes.success;
}
