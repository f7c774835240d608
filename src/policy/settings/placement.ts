/** Settings that say where pods may and should run. */
import {
  architecture,
  architectureRules,
  architectureName,
  imageOverride,
  labelKey,
  tolerationTemplate,
  weights,
} from '../value-kinds/architectures.ts';
import { choice, flag, listOf, namespaceGlob, text } from '../value-kinds/plain.ts';
import { onNoCommonArchitectureValues, onUnknownImageValues, preferenceModes } from '../effective/policy.ts';
import { oneOrMore, recordsByName } from '../value-kinds/records.ts';
import { settingsOf } from './setting.ts';

const placement = settingsOf('webhook', 'controller', 'explain');
const whereItRuns = settingsOf('webhook', 'controller', 'explain', 'clean', 'probe', 'status');
const images = settingsOf('webhook', 'agent', 'controller', 'inspect', 'explain');

export const placementSettings = {
  schedulableArchitectures: placement.live(listOf(architecture), {
    default: [],
    help: 'Architectures of the nodes of this cluster. Empty: no limit.',
  }),
  preferredArchitecture: placement.live(architecture, {
    help: 'Preferred architecture for pods, if their images have it.',
  }),
  preferredWeights: placement.live(weights, {
    default: {},
    help: 'Preferred architectures with weights from 1 to 100. It replaces `preferredArchitecture`.',
  }),
  preferenceMode: placement.live(choice(preferenceModes), {
    default: 'soft',
    help:
      '`soft`: a preference is a weight that the scheduler may overrule. `hard`: a preference pins the ' +
      'pod.',
  }),
  fallbackArchitecture: placement.live(architecture, {
    help: 'Architecture for pods with an unknown image. DaemonSets never get it.',
  }),
  onUnknownImage: placement.live(choice(onUnknownImageValues), {
    help:
      'Effect of an image that cannot be inspected in time. `gate`: a scheduling gate holds the pod ' +
      'until the controller has decided it. `fallback`: `fallbackArchitecture`. `allow`: the pod is ' +
      'admitted. `deny`: the pod is refused. Default: `gate` while a controller leads and agents answer; otherwise ' +
      '`fallback` if `fallbackArchitecture` is set, else `allow`.',
  }),
  onNoCommonArchitecture: placement.live(choice(onNoCommonArchitectureValues), {
    default: 'deny',
    help:
      'Effect of images that share no architecture: the pod is refused with an explanation (`deny`), ' +
      'stays pending (`pend`), or is admitted unchanged (`allow`).',
  }),
  matchNodeLabels: placement.live(listOf(labelKey), {
    default: [],
    help:
      'Label keys. If a pod has one of these labels, its node must have the same label with the same ' +
      'value.',
  }),
  requirePullableNodes: placement.live(flag, {
    default: false,
    help:
      'Excludes nodes whose credentials or network cannot pull the images of a pod, as far as agents ' +
      'know. Needs `agents`. DaemonSets stay unchanged.',
  }),
  tolerations: placement.live(oneOrMore(tolerationTemplate), {
    default: [],
    help:
      'Tolerations for each architecture that a pod can run on: the given `key`, `operator` and ' +
      '`effect`, with the architecture as `value`.',
  }),
  tolerateArchitectureTaint: placement.live(flag, {
    default: true,
    help: 'Tolerates the taint `kubernetes.io/arch=<architecture>:NoSchedule`, which GKE and others set.',
  }),
  architectures: placement.live(recordsByName(architectureName, architectureRules), {
    default: {},
    help:
      'By architecture: `taintsToTolerate`, taints that its pods tolerate, and `requireNodeLabels`, ' +
      'labels that its nodes must have.',
  }),
  excludedNamespaces: placement.live(listOf(namespaceGlob), {
    default: ['kube-*', 'openshift-*'],
    help: "Namespaces to skip, in addition to archwright's own. `*` matches any characters.",
  }),
  namespace: whereItRuns.live(text('namespace'), {
    help: "Archwright's own namespace, which is skipped. Default: the namespace of the service account.",
  }),
  'compat.labels': placement.live(flag, {
    default: false,
    help: 'Reads preference labels of other programs too: `arch.noe.adevinta.com/preferred`.',
  }),
  imageOverrides: images.live(oneOrMore(imageOverride), {
    default: [],
    help:
      'Architectures of images, in place of those in the registry. The first match applies. `match` is ' +
      'an image reference; `*` matches any characters except a slash, `**` any characters. ' +
      '`architectures` may be empty, for an image that runs on any architecture. `level`, such as `v3`, is the ' +
      'level of x86-64 that the image needs on amd64; without `architectures`, the registry says these.',
  }),
};
