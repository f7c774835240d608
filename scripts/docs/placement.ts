/** The page `docs/use/placement.md`: the order of the decision in prose, and every rule. */
import { keys } from '../../src/names/keys.ts';
import { rules } from '../../src/placement/rules/rules.ts';
import { code, table } from './markdown.ts';

const introduction = `# Placement

The decision for a pod, in order. Each step names its rules; \`archwright explain\`, the annotation ${code(keys.decision)} and the
webhook's log at \`debug\` show the rules that applied.

1. **Skipped?** Pods that already have a node, and pods that are disabled or out of scope, stay as they are.
2. **Own constraint?** A pod that names one architecture in its nodeSelector, or one architecture or a node in every required
   term, keeps that, and is never gated: nodes that cannot pull or run an image are excluded only while the image is known. It
   still gets tolerations and \`matchNodeLabels\`. A term that names several, \`In [amd64, arm64]\`, is narrowed to those of the
   images.
3. **Required architectures**: those whose nodes can [pull and run](#variants-and-cpu-levels) all images for the pod's operating
   system (init containers, sidecars, containers, image volumes), within \`schedulableArchitectures\`, \`architectures\` of a
   [\`PodPlacementConfig\`](../reference/custom-resources.md), and the pod's label ${code(keys.architectureLabel)} if \`matchNodeLabels\` has it. They are ANDed into every other required term,
   because an additional term would loosen the pod's own terms. The operating system is \`spec.os\`, else \`kubernetes.io/os\` in
   the nodeSelector or in every required term, else \`linux\`.
4. **Unknown images** follow \`onUnknownImage\` (default: the [gate](gates.md), while a controller leads and agents answer). The known images still
   count. \`not-an-image\`, and an image that \`allowedRegistries\`, \`deniedRegistries\` or \`allowLoopbackRegistries\` refuses, never
   gate a pod. A DaemonSet is never gated and never gets \`fallbackArchitecture\`, which its template would keep: it gets the upper
   bound, and each update decides it again until all of its images are known.
5. **No common architecture** follows \`onNoCommonArchitecture\` (default: the pod is refused). Before that, tags that were answered
   from memory are looked up once more, in case they were pushed again.
6. **Preference**: the first of the pod's label ${code(keys.preferred)}, its annotation ${code(keys.preferredWeights)}
   (\`arm64=80,amd64=20\`), the [custom resources](../reference/custom-resources.md) by priority, and the configuration. A
   preference that the images cannot meet is ignored; images that constrain nothing meet any. With
   \`preferenceMode = "soft"\`, the default, it is a weight that the scheduler may overrule. With \`hard\` the nodeSelector pins the
   pod to the heaviest one.
7. **Tolerations and node labels** for the resulting architectures: \`tolerateArchitectureTaint\`, \`tolerations\`,
   \`architectures.<arch>.taintsToTolerate\` and \`requireNodeLabels\`, \`matchNodeLabels\`, \`taintArchitectures\`.
8. **Nodes of these architectures that cannot pull or run** an image are excluded, by a label or by name.
   Nodes without access to an image are excluded under \`requirePullableNodes\`.

## Variants and CPU levels

An image may be for \`amd64/v3\`, \`386\` or \`arm/v7\`. What a node pulls from an index depends on its runtime:

| index | containerd, local pull (up to 2.0, and later if configured) | containerd from 2.1, CRI-O |
| --- | --- | --- |
| \`386\` alone, on amd64 | pulled | refused |
| \`arm/v7\` alone, on arm64 | pulled; the CPU must run 32-bit programs | refused |
| \`amd64/v2\` to \`v4\` alone | refused | refused |
| \`amd64/v1\` or \`x86_64\` alone, on amd64 | pulled | containerd pulls it, CRI-O refuses it |
| no platforms | the first manifest, if its config fits | the first manifest; containerd only if its config fits |

A single manifest without an index is pulled by every runtime, even for another architecture. \`npm run e2e:node\` compares this with
four versions of containerd.

A node is known by its [agent](../reference/agent-api.md), otherwise by \`status.nodeInfo\` and the labels of
[Node Feature Discovery](https://kubernetes-sigs.github.io/node-feature-discovery/) (\`cpu-cpuid.X86_64_V3\` from v0.19). If too little is known, it
counts as able; the rule \`depends-on-node\` says what decides there. If only some nodes of an architecture can run the images, the others are
excluded: by the label for the CPU level if it tells them apart (from NFD, or ${code(`${keys.amd64Level}=v3`)} under \`amd64LevelLabels = true\`), otherwise by
\`kubernetes.io/hostname NotIn […]\`, up to 250 names; in templates of DaemonSets too.

## Nodes that cannot pull

Agents with equal credential sources form a *credential group* (\`archwright_fleet_credential_groups\`). With \`requirePullableNodes = true\` the
webhook asks one agent of each group about each repository. It excludes the nodes of the groups that were refused or did not reach the registry:
\`kubernetes.io/hostname NotIn […]\` in every required term. A node that can pull with the pod's own pull secrets stays.

- Only known failures exclude a node. New nodes, nodes without an agent and groups that have not answered within \`inlineBudget\` stay.
- No node is excluded if no remaining group can pull all images and has an architecture of the pod, if the pod names its node, while
  the pod is gated, or if more than 250 nodes would be listed. The rule \`pullable-nodes-left-out\` gives the reason.
- DaemonSets and other templates are not changed. \`not-found\` does not exclude a node.
- A success is valid for an hour, a refusal for ten minutes, an unreachable registry for two minutes; each is renewed before that. When a node's
  credentials change, its agent joins another group within about a minute.

\`archwright explain --agents …\` shows which group can pull each image, by the first 12 characters of the \`credentialFingerprint\` of
[its agents](../reference/agent-api.md), and which nodes are excluded.

## Warnings

The person who applies a pod, or a Deployment, StatefulSet, ReplicaSet, Job or CronJob, gets a warning from the API server if

- the images share no architecture, or the pod's own constraint, node affinity or node is one that they cannot run on;
- a preference in the pod names an unknown architecture (\`aarch64\`) or one that the images do not have.

Pods that a controller creates are checked with the template that a person applied. \`workloadWarnings\` of the chart disables this
for templates and for pods that name their node.

## Labels and annotations that you set

| on | key | value | effect |
| --- | --- | --- | --- |
| pod or namespace label, pod annotation | ${code(keys.placement)} | \`disabled\` | skipped |
| pod label | ${code(keys.preferred)} | an architecture | preferred |
| pod annotation | ${code(keys.preferredWeights)} | \`arm64=80,amd64=20\` | preferred, weighted |

## What archwright writes

| on | what | purpose |
| --- | --- | --- |
| pod, DaemonSet template | node affinity on ${code(keys.architectureLabel)}, tolerations, node labels | placement |
| pod | node affinity on ${code(keys.hostnameLabel)} | excludes nodes that cannot pull, under \`requirePullableNodes\` |
| pod, DaemonSet template | annotation ${code(keys.decision)} | records what was added, so that a later call replaces it |
| pod | scheduling gate ${code(keys.gate)} | waiting for unknown images, under \`onUnknownImage = "gate"\` |

Nothing else is changed, and nothing that a person wrote is changed or removed. The annotation is omitted if the pod's annotations
would exceed the API server's limit of 256 KiB.

## Images without a program

Bundles of the Operator Lifecycle Manager (label \`operators.operatorframework.io.bundle.…\`, no \`Entrypoint\`, no \`Cmd\`) are
built for one architecture and unpacked on any. They constrain nothing; the other images of their Job do. An entry of an index
counts like any image, because a node only takes its own. For other images of this kind, set \`imageOverrides\` with
\`architectures = []\`.

## Rules
`;

/** Makes the page. */
export function placementPage(): string {
  const rows = Object.entries(rules).map(([rule, description]) => [code(rule), description]);
  return `${introduction}\n${table(['Rule', 'Meaning'], rows)}\n`;
}
