/** Settings of the controller: what it does, how fast, and how its replicas agree on a leader. */
import { checkArchitecture, labelKey } from '../value-kinds/architectures.ts';
import { choice, duration, flag, integer, listOf, text } from '../value-kinds/plain.ts';
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
    help:
      "Lease in archwright's own namespace for leader election. The webhook gates pods only while the " +
      'Lease is held.',
    parts: ['controller', 'webhook', 'explain', 'clean'],
    restart: true,
  }),
  leaseDuration: setting(duration(2 * second, 10 * minute), {
    default: 15 * second,
    help: 'How long other replicas wait before they take over from a leader that does not renew its Lease.',
    parts: controller,
    restart: true,
  }),
  leaseRenewDeadline: setting(duration(second, 10 * minute), {
    default: 10 * second,
    help: 'A leader that cannot renew its Lease for this long stops leading. Shorter than `leaseDuration`.',
    parts: controller,
    restart: true,
  }),
  leaseRetryPeriod: setting(duration(100, minute), {
    default: 2 * second,
    help: 'Pause between attempts to take or renew the Lease. Shorter than `leaseRenewDeadline`.',
    parts: controller,
    restart: true,
  }),
  maxGateDuration: setting(duration(second, 7 * day), {
    default: 5 * minute,
    help: "Time limit for unknown images of a gated pod, from the pod's creation. Then the fallback applies.",
    parts: controller,
  }),
  gateWorkers: setting(integer(1, 1000), {
    default: 64,
    help: 'Gated pods that are decided concurrently.',
    parts: controller,
    restart: true,
  }),
  kubeRequestsPerSecond: setting(integer(1, 10_000), {
    default: 400,
    help: 'Write requests to the API server per second.',
    parts: controllerAndClean,
    restart: true,
  }),
  kubeRequestsBurst: setting(integer(1, 10_000), {
    default: 800,
    help: 'Write requests to the API server in a burst.',
    parts: controllerAndClean,
    restart: true,
  }),
  taintArchitectures: setting(listOf(text('architecture or *', checkArchitectureOrAll)), {
    default: [],
    help:
      'Architectures whose nodes get the taint `<taintKey>=<architecture>:NoSchedule`, once the pods on ' +
      'them tolerate it. `*`: every architecture. The taints of an architecture are removed when it is ' +
      'removed from the list.',
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
      'Effect on a pod that is not ready, on a node that its images cannot run on: it is evicted ' +
      '(`evict`, within PodDisruptionBudgets), only reported by events (`event`), or ignored (`off`).',
    parts: controller,
  }),
  misplacedPodsShare: setting(integer(1, 100), {
    default: 25,
    help: 'Percentage of the pods of one workload that may be evicted at the same time. At least one.',
    parts: controller,
  }),
  evictionsPerMinute: setting(integer(1, 6000), {
    default: 30,
    help: 'Evictions per minute in the whole cluster.',
    parts: controllerAndClean,
  }),
  movedPodsName: setting(text('name'), {
    default: 'archwright-moved-pods',
    help:
      "ConfigMap in archwright's own namespace with the workloads whose pods were evicted, so that no " +
      'pods are evicted twice.',
    parts: controllerAndClean,
    restart: true,
  }),
  execFormatErrorMonitor: setting(flag, {
    default: true,
    help:
      'Records an image as broken on the architecture of a node if its containers end with an exec ' +
      'format error there. Needs the right to read pod logs.',
    parts: controller,
  }),
  brokenImageTime: setting(duration(minute, 365 * day), {
    default: 7 * day,
    help: 'How long an image stays recorded as broken on an architecture.',
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
    help: 'Counts the images of running pods by operating system, architecture and variant.',
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
      'Issuer of the certificates of webhook, agents and controller: the controller (`builtin`), or ' +
      'another program, such as cert-manager, that writes them to the Secrets (`external`). The ' +
      'controller keeps `caBundle` current in both modes.',
    parts: controllerAndClean,
    restart: true,
  }),
  certificateTime: setting(duration(minute, 3650 * day), {
    default: 90 * day,
    help:
      'Validity of an issued certificate, which is replaced after two thirds of it. Less than an hour is ' +
      'for tests only: the kubelet takes up to two minutes to update a changed Secret in a pod.',
    parts: controller,
    restart: true,
  }),
  caTime: setting(duration(2 * minute, 3650 * day), {
    default: 365 * day,
    help: 'Validity of the built-in CA. A new CA is added after two thirds of it.',
    parts: controller,
    restart: true,
  }),
  caSecret: setting(text('name'), {
    default: 'archwright-ca',
    help: "Secret in archwright's own namespace with the CA and its key. Only the controller may read it.",
    parts: controllerAndClean,
    restart: true,
  }),
  webhookTlsSecret: setting(text('name'), {
    default: 'archwright-webhook-tls',
    help: "Secret with the webhook's serving certificate and the CA for `caBundle`.",
    parts: controllerAndClean,
    restart: true,
  }),
  agentTlsSecret: setting(text('name'), {
    default: 'archwright-agent-tls',
    help: "Secret with the agents' serving certificate and the CA of their clients.",
    parts: controllerAndClean,
    restart: true,
  }),
  webhookClientTlsSecret: setting(text('name'), {
    default: 'archwright-webhook-client-tls',
    help: "Secret with the webhook's client certificate for agents.",
    parts: controllerAndClean,
    restart: true,
  }),
  controllerClientTlsSecret: setting(text('name'), {
    default: 'archwright-controller-client-tls',
    help:
      "Secret with the controller's client certificate for agents. Each controller keeps a copy in " +
      '`agentTlsDir`.',
    parts: controllerAndClean,
    restart: true,
  }),
  webhookNames: setting(listOf(text('DNS name or IP address')), {
    default: [],
    help:
      "DNS names and IP addresses in the webhook's certificate. Default: those of its Service in " +
      '`webhooksFile`.',
    parts: controller,
    restart: true,
  }),
  webhookConfiguration: optional(text('name'), {
    help: 'MutatingWebhookConfiguration that the controller keeps equal to `webhooksFile`. Default: none.',
    parts: controllerAndClean,
    restart: true,
  }),
  webhooksFile: optional(text('path'), {
    help:
      'YAML file with the list `webhooks` of the MutatingWebhookConfiguration, without `caBundle`. The ' +
      'controller writes them once the webhook responds.',
    parts: controller,
    restart: true,
  }),
  webhookAbsenceTime: setting(duration(0, day), {
    default: 30 * second,
    help:
      'A webhook with `failurePolicy: Fail` and without a ready endpoint for this long gets `Ignore` ' +
      'until it is back, so that pods can be created. 0s: never.',
    parts: controller,
  }),
};

function checkArchitectureOrAll(value: string): string | undefined {
  return value === '*' ? undefined : checkArchitecture(value);
}
