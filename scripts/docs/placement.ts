/** The page `docs/use/placement.md`: the order of the decision in prose, and every rule from the list that decisions name. */
import { names } from '../../src/placement/decision.ts';
import { rules } from '../../src/placement/rules.ts';
import { code, table } from './markdown.ts';

const introduction = `# Placement

What is decided for a pod, in this order. Each step names its rules; a decision says which of them took part
(\`archwright explain\`, the annotation ${code(names.decision)} and the webhook's log at \`debug\`).

1. **Skipped?** Pods that are placed already, or that nobody wants placed, are left as they are.
2. **Own constraint?** A pod that constrains its architecture by nodeSelector or in every required term keeps that. It still
   gets tolerations and \`matchNodeLabels\`.
3. **Required architectures**: what all images of the pod have for its operating system (init containers, sidecars,
   containers, image volumes), within \`schedulableArchitectures\` and \`architectures\` of a [\`PodPlacementConfig\`](../reference/custom-resources.md). It is ANDed into every required term; a further term would
   loosen what the pod's author wrote. The operating system is \`spec.os\`, else what the nodeSelector or every required term
   asks for by \`kubernetes.io/os\`, else \`linux\`.
4. **Unknown images** follow \`onUnknownImage\` (by default the [gate](gates.md), where a controller leads); what is known of the
   others is applied all the same. An image of which its registry says that it is none (\`not-an-image\`) keeps no pod waiting.
5. **No common architecture** follows \`onNoCommonArchitecture\` (by default the pod is refused). Before that, tags that are only
   remembered are asked for once more, so that whoever has pushed them again need not wait for memory to notice.
6. **Preference**: the first of the pod's label ${code(names.preferred)}, its annotation ${code(names.preferredWeights)}
   (\`arm64=80,amd64=20\`), the [custom resources](../reference/custom-resources.md) by priority, and the configuration. One that the
   images cannot meet is left out. With \`preferenceMode = "soft"\`, the default, it is a weight that the scheduler may
   overrule; with \`hard\` the pod is pinned to the heaviest by its nodeSelector.
7. **Tolerations and node labels** for the architectures that came out: \`tolerateArchitectureTaint\`, \`tolerations\`,
   \`architectures.<arch>.taintsToTolerate\` and \`requireNodeLabels\`, \`matchNodeLabels\`, \`taintArchitectures\`.
8. **Nodes that cannot pull** an image are left out under \`requirePullableNodes\`.

## Nodes that cannot pull

Nodes differ in their credentials and networks: an image that one pool of nodes pulls may be refused to another. Agents
whose nodes have the same credential sources are a *credential group*; \`archwright_fleet_credential_groups\` counts them.
With \`requirePullableNodes = true\` the webhook asks one agent of each group about each repository, remembers which could
and which were refused or did not get there, and keeps pods away from the nodes of the latter, by an expression
\`kubernetes.io/hostname NotIn […]\` in every required term. The pod's own pull secrets count: a node that can pull with
them is not left out.

- What is not known excludes nothing: new nodes, nodes without an agent, groups that have not answered yet. The first pod of
  a repository waits for the answers within \`inlineBudget\`.
- Nobody is left out where no group would remain that can pull all images and has an architecture of the pod, where
  the pod names its node itself, while it is gated, and where more than 250 nodes would have to be named. The rule
  \`pullable-nodes-left-out\` then says why.
- DaemonSets and other templates are left as they are.
- A grant counts for an hour and a refusal for ten minutes, a registry that was not reached for two; all are asked for
  again before that, behind an answer. When a node's credentials change, its agent joins another group within a minute or
  so, and what was known of it counts no more.
- \`not-found\` says nothing of access, although some registries mean it.

\`archwright explain --agents …\` shows for each image which group can pull it, by the first 12 characters of the
\`credentialFingerprint\` of [its agents](../reference/agent-api.md), and which nodes are left out.

## What people write

| on | key | value | effect |
| --- | --- | --- | --- |
| pod or namespace label, pod annotation | ${code(names.placement)} | \`disabled\` | left alone |
| pod label | ${code(names.preferred)} | an architecture | preferred |
| pod annotation | ${code(names.preferredWeights)} | \`arm64=80,amd64=20\` | preferred, weighted |

## What we write

| on | what | for |
| --- | --- | --- |
| pod, DaemonSet template | node affinity on ${code(names.architectureLabel)}, tolerations, node labels | the placement |
| pod | node affinity on ${code(names.hostnameLabel)} | nodes that cannot pull, under \`requirePullableNodes\` |
| pod, DaemonSet template | annotation ${code(names.decision)} | what was added, so that it is replaced and not added to |
| pod | scheduling gate ${code(names.gate)} | a pod whose images are not known, under \`onUnknownImage = "gate"\` |

Nothing else is changed, and nothing that a person wrote is changed or removed. The annotation is left out where the pod's
annotations would have more than the 256 KiB that the API server takes.

## Variants

Nodes say nothing of an architecture's variant (\`kubernetes.io/arch\` has \`arm64\`, not \`arm64/v9\`), so variants are not
looked at: an image for \`amd64/v3\` alone counts as amd64.

## Images without a program

Bundles of the Operator Lifecycle Manager (the label \`operators.operatorframework.io.bundle.…\`, neither \`Entrypoint\` nor \`Cmd\`) are built for one
architecture and unpacked on any: they constrain nothing, and the other images of the Job do. As entries of an index they count like any image, since a
node takes only its own. For other images of this kind there is \`imageOverrides\` with \`architectures = []\`.

## Rules
`;

/** Makes the page. */
export function placementPage(): string {
  const rows = rules.map(({ rule, description }) => [code(rule), description]);
  return `${introduction}\n${table(['Rule', 'Meaning'], rows)}\n`;
}
