/** Settings that say where pods may and should run. */
import {
  architecture,
  architectureRules,
  checkArchitecture,
  imageOverride,
  labelKey,
  tolerationTemplate,
  weights,
} from '../value-kinds/architectures.ts';
import { choice, flag, listOf, text } from '../value-kinds/plain.ts';
import { onNoCommonArchitectureValues, onUnknownImageValues, preferenceModes } from '../effective/policy.ts';
import { oneOrMore, recordsByName } from '../value-kinds/records.ts';
import { optional, setting } from './setting.ts';

const parts = ['webhook', 'controller', 'explain'] as const;

export const placementSettings = {
  schedulableArchitectures: setting(listOf(architecture), {
    default: [],
    help: 'Architectures of the nodes of this cluster. Empty: no limit.',
    parts,
  }),
  preferredArchitecture: optional(architecture, {
    help: 'Preferred architecture for pods, if their images have it.',
    parts,
  }),
  preferredWeights: setting(weights, {
    default: {},
    help: 'Preferred architectures with weights from 1 to 100. It replaces `preferredArchitecture`.',
    parts,
  }),
  preferenceMode: setting(choice(preferenceModes), {
    default: 'soft',
    help:
      '`soft`: a preference is a weight that the scheduler may overrule. `hard`: a preference pins the ' +
      'pod.',
    parts,
  }),
  fallbackArchitecture: optional(architecture, {
    help: 'Architecture for pods with an unknown image.',
    parts,
  }),
  onUnknownImage: optional(choice(onUnknownImageValues), {
    help:
      'Effect of an image that cannot be inspected in time. `gate`: a scheduling gate holds the pod ' +
      'until the controller has decided it. `fallback`: `fallbackArchitecture`. `allow`: the pod is ' +
      'admitted. `deny`: the pod is refused. Default: `gate` while a controller leads; otherwise ' +
      '`fallback` if `fallbackArchitecture` is set, else `allow`.',
    parts,
  }),
  onNoCommonArchitecture: setting(choice(onNoCommonArchitectureValues), {
    default: 'deny',
    help:
      'Effect of images that share no architecture: the pod is refused with an explanation (`deny`), ' +
      'stays pending (`pend`), or is admitted unchanged (`allow`).',
    parts,
  }),
  matchNodeLabels: setting(listOf(labelKey), {
    default: [],
    help:
      'Label keys. If a pod has one of these labels, its node must have the same label with the same ' +
      'value.',
    parts,
  }),
  requirePullableNodes: setting(flag, {
    default: false,
    help:
      'Excludes nodes whose credentials or network cannot pull the images of a pod, as far as agents ' +
      'know. Needs `agents`. DaemonSets stay unchanged.',
    parts,
  }),
  tolerations: setting(oneOrMore(tolerationTemplate), {
    default: [],
    help:
      'Tolerations for each architecture that a pod can run on: the given `key`, `operator` and ' +
      '`effect`, with the architecture as `value`.',
    parts,
  }),
  tolerateArchitectureTaint: setting(flag, {
    default: true,
    help: 'Tolerates the taint `kubernetes.io/arch=<architecture>:NoSchedule`, which GKE and others set.',
    parts,
  }),
  architectures: setting(recordsByName(checkArchitecture, architectureRules), {
    default: {},
    help:
      'By architecture: `taintsToTolerate`, taints that its pods tolerate, and `requireNodeLabels`, ' +
      'labels that its nodes must have.',
    parts,
  }),
  excludedNamespaces: setting(listOf(text('namespace')), {
    default: ['kube-system'],
    help: "Namespaces to skip, in addition to archwright's own.",
    parts,
  }),
  namespace: optional(text('namespace'), {
    help: "Archwright's own namespace, which is skipped. Default: the namespace of the service account.",
    parts: [...parts, 'clean'],
  }),
  'compat.labels': setting(flag, {
    default: false,
    help: 'Reads preference labels of other programs too: `arch.noe.adevinta.com/preferred`.',
    parts,
  }),
  imageOverrides: setting(oneOrMore(imageOverride), {
    default: [],
    help:
      'Architectures of images, in place of those in the registry. The first match applies. `match` is ' +
      'an image reference; `*` matches any characters except a slash, `**` any characters. ' +
      '`architectures` may be empty, for an image that runs on any architecture.',
    parts: ['webhook', 'agent', 'controller', 'inspect', 'explain'],
  }),
};
