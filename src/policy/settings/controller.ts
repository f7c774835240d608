/** Settings of the controller: what it does, how fast, and how its replicas agree on a leader. */
import { architectureName, labelKey } from '../value-kinds/architectures.ts';
import {
  choice,
  duration,
  flag,
  integer,
  integerOr,
  listOf,
  objectName,
  text,
} from '../value-kinds/plain.ts';
import { settingsOf } from './setting.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const controller = settingsOf('controller');
const controllerAndClean = settingsOf('controller', 'clean');
const controllerCleanAndWebhook = settingsOf('controller', 'clean', 'webhook');
const placement = settingsOf('controller', 'webhook', 'explain');
const shared = settingsOf('controller', 'webhook', 'explain', 'clean');

export const misplacedPodsValues = ['evict', 'event', 'off'] as const;

const architectureOrAll = {
  ...architectureName,
  match: architectureName.match.map(({ pattern, says }) => ({ pattern: `^\\*$|${pattern}`, says })),
};

export const controllerSettings = {
  leaseName: settingsOf('controller', 'webhook', 'explain', 'clean', 'status').atStart(objectName, {
    default: 'archwright-controller',
    help: 'Lease for leader election. The webhook gates pods only while it is held.',
  }),
  leaseDuration: controller.atStart(duration(2 * second, 10 * minute), {
    default: 15 * second,
    help: 'How long replicas wait for a leader that does not renew its Lease.',
  }),
  leaseRenewDeadline: controller.atStart(duration(second, 10 * minute), {
    default: 10 * second,
    help: 'Time after which a leader that cannot renew its Lease stops leading. Must be shorter than `leaseDuration`.',
  }),
  leaseRetryPeriod: controller.atStart(duration(100, minute), {
    default: 2 * second,
    help: 'Pause between attempts to take or renew the Lease. Must be shorter than `leaseRenewDeadline`.',
  }),
  maxGateDuration: controller.live(duration(second, 7 * day), {
    default: 5 * minute,
    help: 'Time limit for a gated pod, from its creation. Then the fallback applies.',
  }),
  kubeRequestsPerSecond: controllerAndClean.atStart(integer(1, 10_000), {
    default: 400,
    help: 'Write requests to the API server per second.',
  }),
  kubeRequestsBurst: controllerAndClean.atStart(integer(1, 10_000), {
    default: 800,
    help: 'Write requests to the API server in a burst.',
  }),
  agentNodes: controller.live(integerOr('all', 1, 1000), {
    default: 'all',
    help: 'Nodes that run an agent: `all`, or a number in each node pool. The controller labels these nodes `arch.example/agent=true`, which the DaemonSet selects.',
  }),
  amd64LevelLabels: controller.live(flag, {
    default: false,
    help: 'Labels amd64 nodes with the x86-64 level that their agents report, `arch.example/amd64-level=v3`. Images that need a level then require the label.',
  }),
  taintArchitectures: placement.live(listOf(text('architecture or *', architectureOrAll)), {
    default: [],
    help: 'Nodes of these architectures get the taint `<taintKey>=<architecture>:NoSchedule` when their pods tolerate it. `*`: all architectures.',
  }),
  taintKey: shared.live(labelKey, {
    default: 'arch.example/architecture',
    help: 'Key of the taint of `taintArchitectures`.',
  }),
  misplacedPods: controller.live(choice(misplacedPodsValues), {
    default: 'evict',
    help: 'Action for a pod that is not ready on a node that cannot run its images: `evict` it within PodDisruptionBudgets, report it by an `event`, or do nothing.',
  }),
  misplacedPodsShare: controller.live(integer(1, 100), {
    default: 25,
    help: 'Percentage of a workload’s pods that may be evicted at the same time; at least one.',
  }),
  evictionsPerMinute: controllerAndClean.live(integer(1, 6000), {
    default: 30,
    help: 'Evictions per minute in the whole cluster; for `archwright clean --restart-pods`, workloads per minute.',
  }),
  rollouts: controller.live(flag, {
    default: true,
    help: 'Follows `ArchitectureRollout`s. Needs the rights to evict pods and to read PersistentVolumes and their claims. Takes effect with the next leader.',
  }),
  execFormatErrorMonitor: controller.live(flag, {
    default: true,
    help: 'Records images with exec format errors, and the x86-64 levels that images need. Needs the right to read pod logs.',
  }),
  brokenImageTime: controller.live(duration(minute, 365 * day), {
    default: 7 * day,
    help: 'How long records of broken images and CPU levels last.',
  }),
  brokenImagesName: shared.atStart(objectName, {
    default: 'archwright-broken-images',
    help: 'ConfigMap with the records of broken images and CPU levels.',
  }),
  driftInterval: controller.live(duration(0, 30 * day), {
    default: 6 * hour,
    help: 'How often each tag of running pods is compared with its registry, by a `HEAD`. An event reports a lost architecture. 0s: never.',
  }),
  driftName: shared.atStart(objectName, {
    default: 'archwright-drift',
    help: 'ConfigMap with the tags that lost or gained an architecture.',
  }),
  reportName: settingsOf('explain', 'clean').atStart(objectName, {
    default: 'archwright-report',
    help: 'ConfigMap that `archwright report --publish` writes, and OpenReports `Report` in each namespace.',
  }),
  runningImagesMetric: controller.atStart(flag, {
    default: true,
    help: 'Counts the images of running pods by platform.',
  }),
};

export const certificatesValues = ['builtin', 'external'] as const;

export const certificateSettings = {
  certificates: settingsOf('controller', 'clean', 'webhook', 'explain').atStart(choice(certificatesValues), {
    default: 'builtin',
    help: 'Issuer of all certificates: the controller (`builtin`), or another program that writes the Secrets (`external`), such as cert-manager.',
  }),
  certificateTime: controller.atStart(duration(minute, 3650 * day), {
    default: 90 * day,
    help: 'Validity of an issued certificate. It is replaced after two thirds of that time. Less than an hour is for tests only.',
  }),
  caTime: controller.atStart(duration(2 * minute, 3650 * day), {
    default: 365 * day,
    help: 'Validity of the built-in CA. It is replaced after two thirds of that time.',
  }),
  caSecret: controllerAndClean.atStart(objectName, {
    default: 'archwright-ca',
    help: 'Secret with the CA and its key, only for the controller.',
  }),
  webhookTlsSecret: controllerCleanAndWebhook.atStart(objectName, {
    default: 'archwright-webhook-tls',
    help: 'Secret with the webhook’s serving certificate and the CA for `caBundle`. A built-in certificate is copied to `tlsDir`.',
  }),
  agentTlsSecret: controllerAndClean.atStart(objectName, {
    default: 'archwright-agent-tls',
    help: "Secret with the agents' serving certificate and the CA of their clients.",
  }),
  agentServiceAccount: controller.atStart(objectName, {
    default: 'archwright-agent',
    help: 'Service account of the agents. Its pods get certificates for their nodes.',
  }),
  webhookClientTlsSecret: controllerCleanAndWebhook.atStart(objectName, {
    default: 'archwright-webhook-client-tls',
    help: 'Secret with the webhook’s client certificate for agents. A built-in certificate is copied to `agentTlsDir`.',
  }),
  controllerClientTlsSecret: controllerAndClean.atStart(objectName, {
    default: 'archwright-controller-client-tls',
    help: 'Secret with the controller’s client certificate for agents, copied to `agentTlsDir`.',
  }),
  webhookNames: controller.atStart(listOf(text('DNS name or IP address')), {
    default: [],
    help: "Names in the webhook's certificate. Default: those in `webhooksFile`.",
  }),
  webhookConfiguration: controllerAndClean.atStart(objectName, {
    help: 'MutatingWebhookConfiguration that the controller keeps equal to `webhooksFile`.',
  }),
  webhooksFile: controller.atStart(text('path'), {
    help: 'YAML file with the list `webhooks` of the MutatingWebhookConfiguration, without `caBundle`.',
  }),
  webhookPathSecret: controllerCleanAndWebhook.atStart(objectName, {
    help: "Secret with the unguessable part of the webhook's path, copied to `webhookPathDir`. Default: none, and the path in `webhooksFile` applies.",
  }),
  webhookPathRotation: controller.live(duration(minute, 3650 * day), {
    default: 7 * day,
    help: 'Age at which the webhook’s path is replaced. The previous one works until the next rotation.',
  }),
};
