/** `archwright webhook`: runs the admission webhook. */
import { text, toggle } from './program/flag.ts';
import { ownNames } from '../src/names/keys.ts';
import { aborted } from '../src/async/wait.ts';
import { systemClock } from '../src/async/clock.ts';
import { followDriftedTags, watchBrokenImages } from '../src/cluster/config-map.ts';
import { startHealth, type Check } from '../src/serving/health.ts';
import { connectCluster } from '../src/cluster/cluster.ts';
import { watchTlsSecret } from '../src/cluster/tls-secret.ts';
import { watchAdmissionPaths } from '../src/webhook/admission-paths.ts';
import { startWebhook } from '../src/webhook/webhook.ts';
import { followPolicies } from './wiring/cluster-policies.ts';
import { openImageFacts } from './wiring/image-facts.ts';
import { openKubernetes, withOwnNamespace } from './wiring/kubernetes.ts';
import { close, startup } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';

const ownFlags = {
  metricsTls: toggle('Serves metrics and health over TLS, with the certificate of the webhook.'),
  webhookClientCa: text(
    'PATH',
    "PEM file with the CA of the API server's client certificate (AdmissionConfiguration, `kubeConfigFile`). Reviews without such a certificate are refused. Read at the start.",
  ),
};

export const subcommand: Subcommand<typeof ownFlags> = {
  usage: '[FLAGS]',
  description:
    'Answers admission reviews: decides each pod from the facts of its images, and patches it. Its certificate is ' +
    'in `--tls-dir`, a directory with `tls.crt` and `tls.key`, or in its own Secret. With `--agents`, the node ' +
    'agents inspect images; otherwise the webhook does. In a pod, or with `--kubeconfig`, it reads pull secrets, ' +
    'namespaces, nodes and custom resources of the cluster.',
  settings: 'webhook',
  flags: ownFlags,
  run,
};

async function run(invocation: Invocation<typeof ownFlags>): Promise<number> {
  const { stop, flags } = invocation;
  await using opened = new AsyncDisposableStack();
  const context = await startup(invocation, opened);
  const { live, log, metrics } = context;
  const configuration = live.current();
  const kubernetes = await openKubernetes(configuration, context.env, 'none', metrics);
  const client = kubernetes?.client;
  const cluster = client && opened.adopt(connectCluster({ client, log, metrics }), close);
  const { namespace } = kubernetes ? withOwnNamespace(() => configuration, kubernetes)() : configuration;
  const own = client && namespace !== undefined ? { client, namespace, clock: systemClock, log } : undefined;
  const names = ownNames(configuration);
  const broken = own && opened.adopt(watchBrokenImages({ ...own, name: names.brokenImages }), close);
  const { tlsDir, certificates, webhookPathSecret } = configuration;
  if (tlsDir === undefined && !own)
    throw new UsageError('name the directory with tls.crt and tls.key by --tls-dir');
  if (webhookPathSecret !== undefined && !own)
    throw new UsageError('webhookPathSecret requires a cluster: run in a pod or set --kubeconfig');
  const name = certificates === 'serviceCa' ? names.serviceCaSecret : names.webhookTlsSecret;
  const watched =
    tlsDir === undefined && own
      ? opened.adopt(watchTlsSecret({ ...own, name, use: 'server', metrics }), close)
      : undefined;
  const clientSecret = own && { ...own, name: names.webhookClientTlsSecret };
  const { cache, requestOf, fleet } = await openImageFacts(
    { ...context, dockerConfigs: 'none', client, clientSecret },
    opened,
  );
  const following = followPolicies({ configuration: live, kubernetes, fleet, log, metrics });
  const followed = opened.adopt(following, close);
  if (own) opened.adopt(followDriftedTags({ ...own, name: names.drift, cache }), close);
  const paths =
    own && webhookPathSecret !== undefined
      ? opened.adopt(watchAdmissionPaths({ ...own, name: webhookPathSecret }), close)
      : undefined;
  // The kubelet probes health while the webhook waits for its certificate, which metrics with TLS use too.
  const checks: Record<string, Check> = {
    certificate: () =>
      watched && !watched.current() ? `the webhook has no certificate yet: ${watched.problem()}` : undefined,
    'warm-up': () => 'the webhook is not listening yet',
  };
  const hasCertificate = async (): Promise<boolean> => {
    await watched?.ready(stop).catch(() => undefined);
    return !stop.aborted;
  };
  const tls = watched ?? tlsDir ?? '';
  if (flags.metricsTls && !(await hasCertificate())) return exitCodes.success;
  const health = await startHealth({
    listen: configuration.metricsListen,
    tls: flags.metricsTls ? tls : undefined,
    ready: checks,
    metrics,
    log,
  });
  opened.defer(() => health.drain(0));
  if (!(await hasCertificate())) return exitCodes.success;
  const webhook = await startWebhook({
    listen: configuration.listen,
    tls,
    clientCaFile: flags.webhookClientCa,
    paths,
    inlineBudgetMs: () => live.current().inlineBudget,
    policies: followed.policies,
    policiesReady: (signal) => followed.ready(signal),
    cache,
    requestOf,
    fleet,
    broken,
    cluster,
    log,
    metrics,
  });
  Object.assign(checks, webhook.checks);
  log.info(
    { health: health.url, cluster: kubernetes?.access.description ?? 'none' },
    'the webhook serves health and metrics',
  );
  await aborted(stop);
  // No Service needs time to drop this endpoint if there is no cluster.
  await webhook.stop({ graceMs: live.current().drainTime, ...(!kubernetes && { noticeMs: 0 }) });
  return exitCodes.success;
}
