/** Settings of the controller: what it does, how fast, and how its replicas agree on a leader. */
import { checkArchitecture, labelKey } from '../kinds/architectures.ts';
import { choice, duration, flag, integer, listOf, text } from '../kinds/plain.ts';
import { optional, setting } from './setting.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const controller = ['controller'] as const;
const controllerAndClean = ['controller', 'clean'] as const;

/** What happens to a pod on a node that cannot run it. */
export const misplacedPodsValues = ['evict', 'event', 'off'] as const;

export const controllerSettings = {
  leaseName: setting(text('name'), {
    default: 'archwright-controller',
    help: "Lease in archwright's own namespace by which controllers agree on a leader; the webhook gates pods only while it is held.",
    parts: ['controller', 'webhook', 'explain', 'clean'],
    restart: true,
  }),
  leaseDuration: setting(duration(2 * second, 10 * minute), {
    default: 15 * second,
    help: 'How long the other replicas wait for a silent leader before one of them takes over.',
    parts: controller,
    restart: true,
  }),
  leaseRenewDeadline: setting(duration(second, 10 * minute), {
    default: 10 * second,
    help: 'A leader that could not renew its Lease for this long stops leading; shorter than `leaseDuration`.',
    parts: controller,
    restart: true,
  }),
  leaseRetryPeriod: setting(duration(100, minute), {
    default: 2 * second,
    help: 'Pause between tries to take or renew the Lease; shorter than `leaseRenewDeadline`.',
    parts: controller,
    restart: true,
  }),
  maxGateDuration: setting(duration(second, 7 * day), {
    default: 5 * minute,
    help: 'How long a pod waits at most, from its creation, for its images to become known. Then the fallback applies.',
    parts: controller,
  }),
  gateWorkers: setting(integer(1, 1000), {
    default: 64,
    help: 'Gated pods that are decided at the same time.',
    parts: controller,
    restart: true,
  }),
  kubeRequestsPerSecond: setting(integer(1, 10_000), {
    default: 400,
    help: 'Requests to the API server that change something, per second.',
    parts: controllerAndClean,
    restart: true,
  }),
  kubeRequestsBurst: setting(integer(1, 10_000), {
    default: 800,
    help: 'Requests to the API server that change something, at once.',
    parts: controllerAndClean,
    restart: true,
  }),
  taintArchitectures: setting(listOf(text('architecture or *', checkArchitectureOrAll)), {
    default: [],
    help:
      'Architectures whose nodes get the taint `<taintKey>=<architecture>:NoSchedule`, after the pods that run there got its ' +
      'toleration; `*` stands for every architecture. An architecture that is taken from the list has its taints taken off.',
    parts: ['controller', 'webhook', 'explain'],
  }),
  taintKey: setting(labelKey, {
    default: 'arch.example/architecture',
    help: 'Key of the taint of `taintArchitectures`.',
    parts: ['controller', 'webhook', 'explain', 'clean'],
  }),
  misplacedPods: setting(choice(misplacedPodsValues), {
    default: 'evict',
    help:
      'What happens to a pod that is not ready on a node whose architecture its images lack: it is evicted (`evict`; ' +
      'PodDisruptionBudgets hold), only told about in events (`event`), or left alone (`off`).',
    parts: controller,
  }),
  misplacedPodsShare: setting(integer(1, 100), {
    default: 25,
    help: 'Percent of the pods of one workload that may be moved at the same time; one at least.',
    parts: controller,
  }),
  evictionsPerMinute: setting(integer(1, 6000), {
    default: 30,
    help: 'Evictions per minute in the whole cluster.',
    parts: controllerAndClean,
  }),
  movedPodsName: setting(text('name'), {
    default: 'archwright-moved-pods',
    help: "ConfigMap in archwright's own namespace that remembers for which workloads pods were moved, so that none is moved twice.",
    parts: controllerAndClean,
    restart: true,
  }),
  execFormatErrorMonitor: setting(flag, {
    default: true,
    help:
      'Whether containers that end with an exec format error make their image count as broken on the architecture of ' +
      'their node. Needs the right to read the logs of pods.',
    parts: controller,
  }),
  brokenImageTime: setting(duration(minute, 365 * day), {
    default: 7 * day,
    help: 'How long an image counts as broken on an architecture after an exec format error was seen.',
    parts: controller,
  }),
  brokenImagesName: setting(text('name'), {
    default: 'archwright-broken-images',
    help: "ConfigMap in archwright's own namespace with the images that are broken on an architecture.",
    parts: ['controller', 'webhook', 'explain', 'clean'],
    restart: true,
  }),
  runningImagesMetric: setting(flag, {
    default: true,
    help: 'Whether the images of running pods are counted by operating system, architecture and variant.',
    parts: controller,
    restart: true,
  }),
};

/** Who makes the certificates. */
export const certificatesValues = ['builtin', 'external'] as const;

export const certificateSettings = {
  certificates: setting(choice(certificatesValues), {
    default: 'builtin',
    help:
      'Who makes the certificates of webhook, agents and controller: the controller (`builtin`), or somebody else, such as ' +
      'cert-manager, who writes them to the Secrets (`external`). Either way the controller keeps `caBundle` true.',
    parts: controllerAndClean,
    restart: true,
  }),
  certificateTime: setting(duration(minute, 3650 * day), {
    default: 90 * day,
    help:
      'How long an issued certificate is valid; it is replaced after two thirds of that. Less than an hour is for tests: ' +
      'the kubelet takes up to two minutes to bring a changed Secret to a pod.',
    parts: controller,
    restart: true,
  }),
  caTime: setting(duration(2 * minute, 3650 * day), {
    default: 365 * day,
    help: 'How long the CA of the built-in certificates is valid; a new one joins it after two thirds of that.',
    parts: controller,
    restart: true,
  }),
  caSecret: setting(text('name'), {
    default: 'archwright-ca',
    help: "Secret in archwright's own namespace with the CA and its key; only the controller may read it.",
    parts: controllerAndClean,
    restart: true,
  }),
  webhookTlsSecret: setting(text('name'), {
    default: 'archwright-webhook-tls',
    help: "Secret with the webhook's serving certificate, and the CA that `caBundle` is taken from.",
    parts: controllerAndClean,
    restart: true,
  }),
  agentTlsSecret: setting(text('name'), {
    default: 'archwright-agent-tls',
    help: "Secret with the agents' serving certificate, and the CA that signs their clients.",
    parts: controllerAndClean,
    restart: true,
  }),
  webhookClientTlsSecret: setting(text('name'), {
    default: 'archwright-webhook-client-tls',
    help: 'Secret with the client certificate by which agents know the webhook.',
    parts: controllerAndClean,
    restart: true,
  }),
  controllerClientTlsSecret: setting(text('name'), {
    default: 'archwright-controller-client-tls',
    help: 'Secret with the client certificate by which agents know the controller; each controller keeps a copy in `agentTlsDir`.',
    parts: controllerAndClean,
    restart: true,
  }),
  webhookNames: setting(listOf(text('DNS name or IP address')), {
    default: [],
    help: 'Names and addresses in the certificate of the webhook. Not set: those of its Service, taken from `webhooksFile`.',
    parts: controller,
    restart: true,
  }),
  webhookConfiguration: optional(text('name'), {
    help: 'MutatingWebhookConfiguration whose webhooks the controller keeps as `webhooksFile` says. Not set: none.',
    parts: controllerAndClean,
    restart: true,
  }),
  webhooksFile: optional(text('path'), {
    help:
      'File in YAML with the list `webhooks` of the MutatingWebhookConfiguration, without `caBundle`. They are written when the ' +
      'webhook answers for the first time.',
    parts: controller,
    restart: true,
  }),
  webhookAbsenceTime: setting(duration(0, day), {
    default: 30 * second,
    help:
      'A webhook with `failurePolicy: Fail` that has had no ready endpoint for this long gets `Ignore` until it is back, so ' +
      'that pods can be created. 0s: never.',
    parts: controller,
  }),
};

function checkArchitectureOrAll(value: string): string | undefined {
  return value === '*' ? undefined : checkArchitecture(value);
}
