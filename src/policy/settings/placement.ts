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
import { choice, flag, listOf, namespaceGlob, objectName, text } from '../value-kinds/plain.ts';
import {
  constraintsValues,
  onNoCommonArchitectureValues,
  onUnknownImageValues,
  preferenceModes,
} from '../effective/policy.ts';
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
    help: 'Preferred architectures with weights, in place of `preferredArchitecture`.',
  }),
  preferenceMode: placement.live(choice(preferenceModes), {
    default: 'soft',
    help: '`soft`: a preference is a weight for the scheduler. `hard`: it pins the pod.',
  }),
  fallbackArchitecture: placement.live(architecture, {
    help: 'Architecture for pods with an unknown image. DaemonSets never get it.',
  }),
  onUnknownImage: placement.live(choice(onUnknownImageValues), {
    help: 'Effect of an unknown image: its pod is gated, gets `fallbackArchitecture`, is admitted or is refused. Default: `gate` while a controller leads and agents answer; otherwise `fallback` if `fallbackArchitecture` is set, else `allow`.',
  }),
  onNoCommonArchitecture: placement.live(choice(onNoCommonArchitectureValues), {
    default: 'deny',
    help: 'Effect of images that share no architecture: the pod is refused, stays pending, or is admitted unchanged.',
  }),
  constraints: placement.live(choice(constraintsValues), {
    default: 'keep',
    help: 'Effect of architectures in a pod’s own nodeSelector or required node affinity: `keep` them, or `widen` them to every architecture that all of its images have.',
  }),
  matchNodeLabels: placement.live(listOf(labelKey), {
    default: [],
    help: 'Keys of pod labels that the pod’s node must also have, with the same value.',
  }),
  requirePullableNodes: placement.live(flag, {
    default: false,
    help: 'Excludes nodes that cannot pull the pod’s images, according to agents. Needs `agents`. Not for DaemonSets.',
  }),
  tolerations: placement.live(oneOrMore(tolerationTemplate), {
    default: [],
    help: 'Tolerations that a pod gets for each of its architectures, with the architecture as `value`.',
  }),
  tolerateArchitectureTaint: placement.live(flag, {
    default: true,
    help: 'Tolerates the taint `kubernetes.io/arch=<architecture>:NoSchedule`, which GKE and others set.',
  }),
  architectures: placement.live(recordsByName(architectureName, architectureRules), {
    default: {},
    help: 'Rules by architecture: taints that pods tolerate (`taintsToTolerate`), and labels that nodes must have (`requireNodeLabels`).',
  }),
  excludedNamespaces: placement.live(listOf(namespaceGlob), {
    default: ['kube-*', 'openshift-*'],
    help: "Namespaces to skip, in addition to archwright's own. `*` matches any characters.",
  }),
  namespace: whereItRuns.live(text('namespace'), {
    help: "Archwright's own namespace. It is always skipped. Default: the namespace of the service account.",
  }),
  name: whereItRuns.atStart(objectName, {
    default: 'archwright',
    help: 'Prefix of the names of archwright’s own Lease, ConfigMaps and Secrets, such as `archwright-controller`. The chart sets its full name.',
  }),
  'compat.labels': placement.live(flag, {
    default: false,
    help: 'Also reads preference labels of other programs: `arch.noe.adevinta.com/preferred`.',
  }),
  imageOverrides: images.live(oneOrMore(imageOverride), {
    default: [],
    help: 'Architectures of images, instead of those from the registry. The first match applies. `match`: an image reference (without a tag: every tag and digest); `*` matches anything but `/`, `**` anything. `architectures`: empty if the image runs on any; default: the registry’s. `level`: the x86-64 level that the image needs, such as `v3`.',
  }),
};
