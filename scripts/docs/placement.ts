/** The page `docs/use/placement.md`: the order of the decision in prose, with every rule. */
import { keys } from '../../src/names/keys.ts';
import { rules } from '../../src/placement/rules/rules.ts';
import { code } from './markdown.ts';

const introduction = `# Placement

How a pod is placed, in order, with the rules that \`archwright explain\` shows. The annotation ${code(keys.summary)} and the webhook's log at \`debug\`
have the result.

1. **Skipped?** ${named('skip-')}. \`skip-no-image\`: only \`imagePullPolicy: Never\`. The template of a DaemonSet is placed instead of its pods.
2. **Own constraint?** ${named('own-')}, ${named('constraint-')}, ${named('empty-term')}. A pod that names one architecture in its nodeSelector, or one
   architecture or a node in every required term, keeps that and is never gated, unless it is [widened](#charts-that-pin-an-architecture). It still gets
   tolerations and \`matchNodeLabels\`, and, if the image is known, the exclusions of step 8. A term with several architectures is narrowed to those of
   the images.
3. **Required architectures**: ${named('required-')}, ${named('schedulable-')}, ${named('allowed-')}, ${named('exec-')}, ${named('cpu-')},
   ${named('image-')}, ${named('unconstrained')}. Those whose nodes can [pull and run](#variants-and-cpu-levels) all images (init containers, sidecars,
   containers, image volumes), within \`schedulableArchitectures\`, \`architectures\` of a [\`PodPlacementConfig\`](../reference/custom-resources.md), and
   the pod's label ${code(keys.architectureLabel)} if \`matchNodeLabels\` has it, without
   [broken ones](../operate/exec-format-errors.md). Artifacts, WebAssembly and images that are invalid or never pulled constrain nothing. The result is
   ANDed into every other required term. The operating system is \`spec.os\`, else \`kubernetes.io/os\` in the nodeSelector or in every required term, else
   \`linux\`.
4. **Unknown images**: ${named('unknown-')}. \`onUnknownImage\` decides (default: the [gate](gates.md)); the known images still count.
   \`not-an-image\`, and an image that \`allowedRegistries\`, \`deniedRegistries\` or \`allowLoopbackRegistries\` refuses, never gate a pod. A DaemonSet is
   never gated and never gets \`fallbackArchitecture\`: it keeps recorded architectures, else gets those of the known images.
5. **No common architecture**: ${named('no-common-')}. \`onNoCommonArchitecture\` decides (default: refused). Tags in memory are looked up once more before.
6. **Preference**: ${named('prefer')}. The first of the pod's own preferred affinity, its label ${code(keys.preferred)}, its annotation
   ${code(keys.preferredWeights)}, the [custom resources](../reference/custom-resources.md) by priority, and the configuration. A preference that the images
   cannot meet is ignored. With \`preferenceMode = "soft"\`, the default, it is a weight; with \`hard\` the nodeSelector pins the pod to the heaviest one.
7. **Tolerations and node labels** of these architectures: ${named('tolerations')} (\`tolerateArchitectureTaint\`, \`tolerations\`, \`taintArchitectures\`,
   \`architectures.<arch>.taintsToTolerate\`), ${named('require-')} (\`architectures.<arch>.requireNodeLabels\`), ${named('match-')}
   (\`matchNodeLabels\`).
8. **Nodes that cannot run an image** are excluded: ${named('node-classes')}, ${named('depends-')}; under \`requirePullableNodes\` also those that cannot
   pull it: ${named('pullable-')}.

@others

## Labels and annotations that you set

- label or annotation of a pod, label of a namespace: ${code(`${keys.placement}: disabled`)} skips it.
- pod label: ${code(`${keys.preferred}: arm64`)} prefers an architecture.
- pod annotation: ${code(`${keys.preferredWeights}: arm64=80,amd64=20`)} prefers by weight.

## What archwright writes

- pods and templates of DaemonSets: node affinity on ${code(keys.architectureLabel)} and ${code(keys.hostnameLabel)}, tolerations, node labels; the
  annotation ${code(keys.decision)}, which records what was added, unless the annotations would exceed 256 KiB.
- pods: the scheduling gate ${code(keys.gate)}; with the record, the label ${code(keys.placementState)} and the annotation ${code(keys.summary)}, such as
  \`placed, requires amd64, arm64: all images can run there\`.

Nothing that a person wrote is changed or removed, except architectures under \`constraints = "widen"\`.

## Warnings

People who apply a pod or a workload get a warning if the images share no architecture, if they cannot run where the pod's own constraint, affinity or node
puts it, if that is widened, or if it prefers an architecture that is unknown (\`aarch64\`) or that the images lack. The chart's \`workloadWarnings\`
disables this for templates and for pods that name their node.

## Charts that pin an architecture

Many charts name \`kubernetes.io/arch: amd64\` although their images also have arm64. Under \`constraints = "widen"\`, also by a
[custom resource](../reference/custom-resources.md), a new pod may run on all architectures that its images have. What it names in its nodeSelector, or by
\`In\` in required terms, is replaced. It keeps every node that it could have before, and preferences are weights even in mode
\`hard\`. A warning, \`explain\` and the annotation (\`widened\`) report it. A pod keeps what it names (rule \`constraint-not-widened\`, with the
reason), if

- an image is unknown when the pod is created, or is never pulled;
- its images have no other architecture within \`schedulableArchitectures\` and \`architectures\`, or it is not certain that all of its nodes
  [can run them](#variants-and-cpu-levels);
- it is pinned by its label or annotation in mode \`hard\`, by its label \`kubernetes.io/arch\` under \`matchNodeLabels\`, or to a node;
- its required terms name different architectures, it has a \`runtimeClassName\`, or it names the architecture of its [\`ArchitectureRollout\`](rollout.md);
- another webhook names an architecture again, or the annotation has no room.

\`NotIn\` stays in force. DaemonSets and templates are never widened. To except pods, set \`constraints: keep\` in a \`PodPlacementConfig\`.

## Variants and CPU levels

An image may be for \`amd64/v3\`, \`386\` or \`arm/v7\`. What a node pulls from an index depends on its runtime (\`npm run e2e:node\` compares):

| index | containerd, local pull (up to 2.0, and later if configured) | containerd from 2.1, CRI-O |
| --- | --- | --- |
| \`386\` alone, on amd64 | pulled | refused |
| \`arm/v7\` alone, on arm64 | pulled; the CPU must run 32-bit programs | refused |
| \`amd64/v2\` to \`v4\` alone | refused | refused |
| \`amd64/v1\` or \`x86_64\` alone, on amd64 | pulled | CRI-O refuses it |
| no platforms | the first manifest, if its config fits | the first manifest; containerd only if its config fits |

Every runtime pulls a single manifest without an index, even for another architecture.

Nodes are known by their [agents](../reference/agent-api.md), otherwise by \`status.nodeInfo\` and the labels of
[Node Feature Discovery](https://kubernetes-sigs.github.io/node-feature-discovery/) (\`cpu-cpuid.X86_64_V3\` from v0.19). If too little is known, a node
counts as able (rule \`depends-on-node\`). Nodes that cannot run the images are excluded, in templates of DaemonSets too: by the label for the CPU level
(from NFD, or ${code(`${keys.amd64Level}=v3`)} under \`amd64LevelLabels = true\`), otherwise by \`kubernetes.io/hostname NotIn […]\`, up to 250 names.

## Nodes that cannot pull

With \`requirePullableNodes = true\` the webhook asks one agent of each *credential group* (agents with equal credential sources) about each repository.
Nodes of groups that were refused or did not reach the registry are excluded by \`kubernetes.io/hostname NotIn […]\` in every required term. A node that can
pull with the pod's own pull secrets stays.

- Only known failures exclude a node; \`not-found\` does not. New nodes, nodes without an agent and groups that have not answered within \`inlineBudget\`
  stay.
- No node is excluded if no remaining group can pull all images and has an architecture of the pod, if the pod names its node, while the pod is gated, or
  if more than 250 nodes would be listed (rule \`pullable-nodes-left-out\`). Templates are not changed.
- A success counts for an hour, a refusal for ten minutes, an unreachable registry for two.

\`archwright explain --agents …\` shows which group can pull each image, and the excluded nodes.

## Images without a program

Bundles of the Operator Lifecycle Manager (label \`operators.operatorframework.io.bundle.…\`, no \`Entrypoint\`, no \`Cmd\`) constrain nothing, unless they
are an entry of an index. For other images of this kind, set \`imageOverrides\` with \`architectures = []\`.
`;

/** The rules that begin so. */
function named(start: string): string {
  const names = Object.keys(rules).filter((rule) => rule.startsWith(start));
  if (names.length === 0) throw new Error(`no rule begins with ${start}`);
  return names.map(code).join(', ');
}

/** Makes the page. Rules that no step names come after the steps, with their meaning. */
export function placementPage(): string {
  const others = Object.entries(rules).filter(([rule]) => !introduction.includes(code(rule)));
  const list = others.map(([rule, description]) => `- ${code(rule)}: ${description}`);
  return introduction.replace('@others', () => `Other rules:\n\n${list.join('\n')}`);
}
