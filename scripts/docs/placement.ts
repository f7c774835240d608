/** The page `docs/use/placement.md`: the order of the decision in prose, with every rule. */
import { keys } from '../../src/names/keys.ts';
import { rules } from '../../src/placement/rules/rules.ts';
import { code } from './markdown.ts';

const introduction = `# Placement

The steps of a decision, in order, with the rules that \`archwright explain\` shows. The annotation ${code(keys.summary)} and the webhook's log at
\`debug\` have the result.

1. **Skipped pods.** Pods that need no decision, such as pods that only have images with \`imagePullPolicy: Never\`. For a DaemonSet, the template
   is placed, not its pods. Rules: ${named('skip-')}.
2. **Own constraint.** A pod that names one architecture in its nodeSelector, or one architecture or a node in every required term, keeps it and is
   never gated, unless it is [widened](#charts-that-pin-an-architecture). It still gets tolerations and \`matchNodeLabels\`, and, if the image is
   known, the exclusions of step 8. A term with several architectures is narrowed to the architectures of the images. Rules: ${named('own-')},
   ${named('constraint-')}, ${named('empty-term')}.
3. **Required architectures.** The pod requires the architectures whose nodes can [pull and run](#variants-and-cpu-levels) all of its images: of init
   containers, sidecars, containers and image volumes. Artifacts, WebAssembly and images that are invalid or never pulled constrain nothing. The architectures are limited by
   \`schedulableArchitectures\`, by \`architectures\` of a [\`PodPlacementConfig\`](../reference/custom-resources.md), and by the pod's label
   ${code(keys.architectureLabel)} if \`matchNodeLabels\` has this key. [Broken architectures](../operate/exec-format-errors.md) are removed. The result
   is added to every required term that step 2 did not keep. The operating system is \`spec.os\`, otherwise \`kubernetes.io/os\` in the nodeSelector or in every required
   term, otherwise \`linux\`. Rules: ${named('required-')}, ${named('schedulable-')}, ${named('allowed-')}, ${named('exec-')},
   ${named('cpu-')}, ${named('image-')}, ${named('unconstrained')}.
4. **Unknown images.** \`onUnknownImage\` decides (default: the [gate](gates.md)). The known images still count. \`not-an-image\`, and images that
   \`allowedRegistries\`, \`deniedRegistries\` or \`allowLoopbackRegistries\` refuse, never gate a pod. A DaemonSet is never gated and never gets
   \`fallbackArchitecture\`: it keeps recorded architectures, otherwise it gets those of the known images. Rules: ${named('unknown-')}.
5. **No common architecture.** \`onNoCommonArchitecture\` decides (default: the pod is refused). Before that, tags in memory are looked up once more.
   Rules: ${named('no-common-')}.
6. **Preference.** The first of these applies: the pod's own preferred affinity, its label ${code(keys.preferred)}, its annotation
   ${code(keys.preferredWeights)}, the [custom resources](../reference/custom-resources.md) by priority, the configuration. A preference that the images
   cannot meet is ignored. With \`preferenceMode = "soft"\`, the default, it is a weight; with \`hard\` the nodeSelector pins the pod to the heaviest
   architecture. Rules: ${named('prefer')}.
7. **Tolerations and node labels** of these architectures: ${named('tolerations')} (\`tolerateArchitectureTaint\`, \`tolerations\`, \`taintArchitectures\`,
   \`architectures.<arch>.taintsToTolerate\`), ${named('require-')} (\`architectures.<arch>.requireNodeLabels\`), ${named('match-')}
   (\`matchNodeLabels\`).
8. **Nodes that cannot run an image** are excluded: ${named('node-classes')}, ${named('depends-')}. Under \`requirePullableNodes\`, nodes that cannot pull
   it are also excluded: ${named('pullable-')}.

@others

## Labels and annotations that you set

- ${code(`${keys.placement}: disabled`)}, label or annotation of a pod, or label of a namespace: skips it.
- ${code(`${keys.preferred}: arm64`)}, label of a pod: prefers an architecture.
- ${code(`${keys.preferredWeights}: arm64=80,amd64=20`)}, annotation of a pod: prefers by weight.

## What archwright writes

- In pods and templates of DaemonSets: node affinity on ${code(keys.architectureLabel)} and ${code(keys.hostnameLabel)}, tolerations and node labels. The
  annotation ${code(keys.decision)} records these additions, unless the annotations would exceed 256 KiB.
- In pods: the scheduling gate ${code(keys.gate)}. If there is room for it, also the label ${code(keys.placementState)} and the annotation ${code(keys.summary)},
  such as \`placed, requires amd64, arm64: all images can run there\`.

archwright never changes or removes what users wrote, except architectures under \`constraints = "widen"\`.

## Warnings

When you apply a pod or a workload, you get a warning if

- the images share no architecture;
- the images cannot run where the pod's own constraint, affinity or node puts it, or the constraint is widened;
- the pod prefers an architecture that is unknown (\`aarch64\`) or that the images lack;
- an image [cannot be inspected](../operate/troubleshooting.md#an-image-is-unknown);
- nodes that cannot pull or run an image cannot be excluded, or the object is too large or cannot be understood;
- the value of \`arch.example/placement\` has no effect (\`disable\`).

The chart's value \`workloadWarnings\` disables this for templates (not of DaemonSets), pods that name their node, and new
images of running pods.

## Charts that pin an architecture

Many charts name \`kubernetes.io/arch: amd64\` although their images also have arm64. With \`constraints = "widen"\`, also in a
[custom resource](../reference/custom-resources.md), a new pod may run on all architectures that its images have. Architectures in its nodeSelector, or
with \`In\` in required terms, are replaced. The pod can still use every node that it could use before, and preferences are weights even in mode
\`hard\`. A warning, \`explain\` and the annotation (\`widened\`) report it. A pod keeps its architectures (rule \`constraint-not-widened\`, with the
reason) if

- an image is unknown when the pod is created, or is never pulled;
- its images have no other architecture within \`schedulableArchitectures\` and \`architectures\`, or it is uncertain that all of its nodes
  [can run them](#variants-and-cpu-levels);
- it is pinned by its label or annotation in mode \`hard\`, by its label \`kubernetes.io/arch\` under \`matchNodeLabels\`, or to a node;
- its required terms name different architectures, it has a \`runtimeClassName\`, or it names the architecture of its [\`ArchitectureRollout\`](rollout.md);
- another webhook names an architecture again.

\`NotIn\` is kept. DaemonSets and templates are never widened. To exempt pods, set \`constraints: keep\` in a \`PodPlacementConfig\`.

## Groups on one architecture

Pods of Spark, MPI and the like must all run on one architecture, whichever it is. Required pod affinity does that, and archwright leaves it as it is:

\`\`\`yaml
metadata:
  labels: { group: training }
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - { topologyKey: kubernetes.io/arch, labelSelector: { matchLabels: { group: training } } }
\`\`\`

The first pod that is scheduled chooses by its images and its preference. The others follow, gated pods too.

- If the images of a group differ, the first pod can choose an architecture that another one lacks. That one then stays pending. So limit the group by a
  \`PodPlacementConfig\` with its label in \`labelSelector\`, and with the architectures that all of its images have in \`architectures\`.
- Use \`preferenceMode = "soft"\`: \`hard\` pins each pod by its own images.
- An [\`ArchitectureRollout\`](rollout.md) leaves such pods where they are, and says so in its status. To move a group, delete all of its pods.

## Variants and CPU levels

An image may be for \`amd64/v3\`, \`386\` or \`arm/v7\`. The runtime of a node determines what the node pulls from an index (\`npm run e2e:node\` compares):

| index | containerd, local pull (up to 2.0, and later if configured) | containerd from 2.1, CRI-O |
| --- | --- | --- |
| \`386\` alone, on amd64 | pulled | refused |
| \`arm/v7\` alone, on arm64 | pulled; the CPU must run 32-bit programs | refused |
| \`amd64/v2\` to \`v4\` alone | refused | refused |
| \`amd64/v1\` or \`x86_64\` alone, on amd64 | pulled | pulled; refused by CRI-O |
| \`os.features\` (\`erofs\`) | pulled, refused from 2.3 | refused from 2.3, and by Debian's 2.1; CRI-O: pulled |
| no platforms | the first manifest, if its config fits | the first manifest; containerd only if its config fits |

Every runtime pulls a single manifest without an index, even for another architecture.

[Agents](../reference/agent-api.md) report runtime and CPU of their nodes. Nodes without an agent are judged by \`status.nodeInfo\` and the labels of
[Node Feature Discovery](https://kubernetes-sigs.github.io/node-feature-discovery/) (\`cpu-cpuid.X86_64_V3\` from v0.19). If too little is known about a
node, it counts as able to run the image (rule \`depends-on-node\`). Nodes that cannot run the images are excluded, also in templates of DaemonSets: by
the label for the CPU level (from NFD, or ${code(`${keys.amd64Level}=v3`)} under \`amd64LevelLabels = true\`), otherwise by
\`kubernetes.io/hostname NotIn […]\`, up to 250 names.

## Nodes that cannot pull

With \`requirePullableNodes = true\`, one agent of each *credential group* (agents with equal credential sources) checks each repository. If a registry
refused a group or was unreachable, \`kubernetes.io/hostname NotIn […]\` in every required term excludes the nodes of the group. Nodes that can pull with
the pod's own pull secrets are not excluded.

- Only known failures exclude a node; \`not-found\` does not. New nodes, nodes without an agent and groups that have not answered within \`inlineBudget\`
  are not excluded.
- No node is excluded if no remaining group can pull all images and has an architecture of the pod, if the pod names its node, while the pod is gated, or
  if more than 250 nodes would be listed (rule \`pullable-nodes-left-out\`). Templates are not changed.
- A success is cached for an hour, a refusal for ten minutes, an unreachable registry for two.

\`archwright explain --agents …\` shows which groups can pull each image, and the excluded nodes.

## Images without a program

Bundles of the Operator Lifecycle Manager (label \`operators.operatorframework.io.bundle.…\`, no \`Entrypoint\`, no \`Cmd\`) constrain nothing, unless they
are an entry of an index. For other images without a program, set \`imageOverrides\` with \`architectures = []\`.
`;

/** The rules that begin so. */
function named(start: string): string {
  const names = Object.keys(rules).filter((rule) => rule.startsWith(start));
  if (names.length === 0) throw new Error(`no rule begins with ${start}`);
  return names.map(code).join(', ');
}

/** Rules without a step come after the steps, with their meaning. */
export function placementPage(): string {
  const others = Object.entries(rules).filter(([rule]) => !introduction.includes(code(rule)));
  const list = others.map(([rule, description]) => `- ${code(rule)}: ${description}`);
  return introduction.replace('@others', () => `Other rules:\n\n${list.join('\n')}`);
}
