/** Settings of the controller: what it does, and how fast. */
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
  maxGateDuration: controller.live(duration(second, 7 * day), {
    default: 5 * minute,
    help: 'Time limit for a gated pod, from its creation. Then the fallback applies.',
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
  rollouts: placement.live(flag, {
    default: true,
    help: 'Follows `ArchitectureRollout`s. Needs the rights to evict pods and to read PersistentVolumes and their claims. `false`: rollouts stay at their step, and new pods are placed as without them.',
  }),
  execFormatErrorMonitor: controller.live(flag, {
    default: true,
    help: 'Records images with exec format errors, and the x86-64 levels that images need. Needs the right to read pod logs.',
  }),
  execFormatErrorTracing: settingsOf('agent').atStart(flag, {
    default: false,
    help: 'Finds exec format errors of all programs in containers, also of those that a shell starts later, by the kernel’s tracing. Needs more host paths: docs/operate/exec-format-errors.md.',
  }),
  brokenImageTime: controller.live(duration(minute, 365 * day), {
    default: 7 * day,
    help: 'How long records of broken images and CPU levels last.',
  }),
  driftInterval: controller.live(duration(0, 30 * day), {
    default: 6 * hour,
    help: 'How often each tag of running pods is compared with its registry, by a `HEAD`. An event reports a lost architecture. 0s: never.',
  }),
};

export const certificatesValues = ['builtin', 'external', 'serviceCa'] as const;

export const certificateSettings = {
  certificates: settingsOf('controller', 'clean', 'webhook', 'explain').atStart(choice(certificatesValues), {
    default: 'builtin',
    help: 'Issuer of the certificates: the controller (`builtin`), another program that writes the Secrets (`external`), such as cert-manager, or the service CA of OpenShift for the webhook and the controller for the others (`serviceCa`).',
  }),
  certificateTime: controller.atStart(duration(minute, 3650 * day), {
    default: 90 * day,
    help: 'Validity of an issued certificate. It is replaced after two thirds of that time. Less than an hour is for tests only.',
  }),
  webhookConfiguration: controllerAndClean.atStart(objectName, {
    help: 'MutatingWebhookConfiguration that the controller keeps equal to the file of its flag `--webhooks-file`.',
  }),
  webhookPathSecret: controllerCleanAndWebhook.atStart(objectName, {
    help: "Secret with the unguessable part of the webhook's path, which the webhook reads. Default: none, and the path in that file applies.",
  }),
};
