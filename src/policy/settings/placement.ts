/** Settings that say where pods may and should run. */
import {
  architecture,
  architectureRules,
  checkArchitecture,
  imageOverride,
  labelKey,
  tolerationTemplate,
  weights,
} from '../kinds/architectures.ts';
import { choice, flag, listOf, text } from '../kinds/plain.ts';
import { onNoCommonArchitectureValues, onUnknownImageValues, preferenceModes } from '../effective/policy.ts';
import { oneOrMore, recordsByName } from '../kinds/records.ts';
import { optional, setting } from './setting.ts';

const parts = ['webhook', 'controller', 'explain'] as const;

export const placementSettings = {
  schedulableArchitectures: setting(listOf(architecture), {
    default: [],
    help: 'Architectures that nodes of this cluster can have; empty: whatever the images have.',
    parts,
  }),
  preferredArchitecture: optional(architecture, {
    help: 'Architecture that pods go to where their images allow it.',
    parts,
  }),
  preferredWeights: setting(weights, {
    default: {},
    help: 'Preferred architectures with weights from 1 to 100, in place of `preferredArchitecture`.',
    parts,
  }),
  preferenceMode: setting(choice(preferenceModes), {
    default: 'soft',
    help: 'Whether a preference is a weight that the scheduler may overrule (`soft`) or pins the pod (`hard`).',
    parts,
  }),
  fallbackArchitecture: optional(architecture, {
    help: 'Architecture for pods with an image about which nothing can be learned.',
    parts,
  }),
  onUnknownImage: optional(choice(onUnknownImageValues), {
    help:
      'What happens to a pod with an image about which nothing is known in time. `gate` keeps it from being scheduled ' +
      'until the controller has decided it; it is what happens where nothing is set. While no controller leads, and where ' +
      'nothing is set or `gate`: `fallback` where `fallbackArchitecture` is set, else `allow`.',
    parts,
  }),
  onNoCommonArchitecture: setting(choice(onNoCommonArchitectureValues), {
    default: 'deny',
    help:
      'What happens to a pod whose images share no architecture: it is refused with an explanation (`deny`), stays ' +
      'pending (`pend`), or is left as it is (`allow`).',
    parts,
  }),
  matchNodeLabels: setting(listOf(labelKey), {
    default: [],
    help: 'Label keys: where a pod carries one of them, its node must carry the same key with the same value.',
    parts,
  }),
  requirePullableNodes: setting(flag, {
    default: false,
    help:
      'Keeps pods away from nodes whose credentials or network cannot pull their images, as far as agents have found ' +
      'out. It needs `agents`. DaemonSets are left as they are.',
    parts,
  }),
  tolerations: setting(oneOrMore(tolerationTemplate), {
    default: [],
    help:
      'Toleration added for each architecture that a pod can run on: `key`, `operator` and `effect` as given, with ' +
      'the architecture as `value`.',
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
      'For each architecture, `taintsToTolerate`: what pods that can run there tolerate, and `requireNodeLabels`: ' +
      'what a node of it must carry.',
    parts,
  }),
  excludedNamespaces: setting(listOf(text('namespace')), {
    default: ['kube-system'],
    help: 'Namespaces whose pods are left alone, besides the one that archwright runs in.',
    parts,
  }),
  namespace: optional(text('namespace'), {
    help: 'Namespace that archwright itself runs in; its pods are left alone. Not set: that of the service account.',
    parts: [...parts, 'clean'],
  }),
  'compat.labels': setting(flag, {
    default: false,
    help: "Whether pods' labels of other programs count as ours: `arch.noe.adevinta.com/preferred`.",
    parts,
  }),
  imageOverrides: setting(oneOrMore(imageOverride), {
    default: [],
    help:
      'Images whose architectures are taken from here instead of their registry; the first that matches counts. ' +
      '`match` is an image in which `*` stands for any characters but a slash and `**` for any; `architectures` is a ' +
      'list that may be empty, for an image that runs anywhere.',
    parts: ['webhook', 'agent', 'controller', 'inspect', 'explain'],
  }),
};
