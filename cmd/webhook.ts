/** `archwright webhook`: runs the admission webhook. */
import { aborted } from '../src/async/wait.ts';
import { systemClock } from '../src/async/clock.ts';
import { watchBrokenImages } from '../src/cluster/broken-images.ts';
import { followDriftedTags } from '../src/cluster/drifted-tags.ts';
import { startHealth, type Check } from '../src/serving/health.ts';
import { connectCluster } from '../src/cluster/cluster.ts';
import { openAdmissionPaths } from '../src/webhook/admission-paths.ts';
import { startWebhook } from '../src/webhook/webhook.ts';
import { followPolicies } from './wiring/cluster-policies.ts';
import { keepOwnSecrets } from './wiring/own-secrets.ts';
import { openImageFacts } from './wiring/image-facts.ts';
import { openKubernetes, withOwnNamespace } from './wiring/kubernetes.ts';
import { startup } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS]',
  description:
    'Answers admission reviews: decides each pod from the facts of its images, and patches it. Requires ' +
    '`--tls-dir`, a directory with `tls.crt` and `tls.key`. With `--agents`, the node agents inspect ' +
    'images; otherwise the webhook does. In a pod, or with `--kubeconfig`, it reads pull secrets, ' +
    'namespaces, nodes and custom resources of the cluster.',
  settings: 'webhook',
  flags: {},
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { io, stop } = invocation;
  const { configuration: live, log, metrics } = await startup(invocation);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => live.close());
  const configuration = live.current();
  if (configuration.tlsDir === undefined) {
    throw new UsageError('name the directory with tls.crt and tls.key by --tls-dir');
  }
  const kubernetes = await openKubernetes(configuration, io.env, 'none', metrics);
  const client = kubernetes?.client;
  const cluster = client && connectCluster({ client, log, metrics });
  if (cluster) opened.defer(() => cluster.close());
  const { namespace } = kubernetes ? withOwnNamespace(() => configuration, kubernetes)() : configuration;
  const own = client && namespace !== undefined ? { client, namespace, clock: systemClock, log } : undefined;
  const broken = own && watchBrokenImages({ ...own, name: configuration.brokenImagesName });
  if (broken) opened.defer(() => broken.close());
  const secrets = keepOwnSecrets(configuration, kubernetes, namespace, log);
  if (secrets) opened.defer(() => secrets.close());
  const { cache, requestOf, fleet } = await openImageFacts(
    {
      configuration: () => live.current(),
      dockerConfigs: 'none',
      env: io.env,
      client,
      mayWait: secrets !== undefined,
      log,
      metrics,
    },
    opened,
  );
  const followed = followPolicies({ configuration: live, kubernetes, fleet, log, metrics });
  opened.defer(() => followed.close());
  const drifted = own && followDriftedTags({ ...own, name: configuration.driftName, cache });
  if (drifted) opened.defer(() => drifted.close());
  const { webhookPathDir, webhookClientCa } = configuration;
  const paths =
    webhookPathDir === undefined ? undefined : await openAdmissionPaths({ dir: webhookPathDir, log });
  if (paths) opened.defer(() => paths.close());
  // The kubelet probes health while the webhook waits for its certificate, which metrics with TLS use too.
  const checks: Record<string, Check> = {
    ...secrets?.checks,
    'warm-up': () => 'the webhook does not listen yet',
  };
  if (configuration.metricsTlsDir !== undefined) await secrets?.ready(stop);
  if (stop.aborted) return exitCodes.success;
  const health = await startHealth({
    listen: configuration.metricsListen,
    tlsDir: configuration.metricsTlsDir,
    ready: checks,
    metrics,
    log,
  });
  opened.defer(() => health.drain(0));
  await secrets?.ready(stop);
  if (stop.aborted) return exitCodes.success;
  const webhook = await startWebhook({
    listen: configuration.listen,
    tlsDir: configuration.tlsDir,
    clientCaFile: webhookClientCa,
    paths,
    inlineBudgetMs: () => live.current().inlineBudget,
    pullSecretCacheMs: configuration.pullSecretCacheTime,
    policies: followed.policies,
    policiesReady: (signal) => followed.ready(signal),
    cache,
    requestOf,
    fleet,
    broken,
    cluster,
    warmUpMs: configuration.warmUpTime,
    log,
    metrics,
  });
  Object.assign(checks, webhook.checks);
  log.info(
    { health: health.url, cluster: kubernetes?.access.description ?? 'none' },
    'the webhook serves health and metrics',
  );
  await aborted(stop);
  // Without a cluster no Service needs time to drop this endpoint.
  await webhook.stop({ graceMs: live.current().drainTime, ...(!kubernetes && { noticeMs: 0 }) });
  return exitCodes.success;
}
