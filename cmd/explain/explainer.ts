/** Explains one object: the webhook's own steps, with time to wait for each image. */
import jsonPatch from 'fast-json-patch';
import { serviceAccountOf } from '../../src/credentials/credential.ts';
import type { Operation, Outcome, PlacementDecision, PlacementInput } from '../../src/placement/decision.ts';
import { decide } from '../../src/placement/decide.ts';
import type { OwnerReference, PodSpec } from '../../src/kube/api/objects.ts';
import { imagesOf, type ImageUse } from '../../src/placement/pod/images.ts';
import type { BrokenImage } from '../../src/images/sources/broken-images.ts';
import { decidedOutcome, uncheckedRecord } from '../../src/placement/record/read.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { nodesPinnedBy } from '../../src/placement/pod/terms.ts';
import { runningPodWarnings } from '../../src/placement/running-pod.ts';
import { namedNodeArchitecture, skipReasonOf } from '../../src/placement/rules/skip.ts';
import type { Policies } from '../../src/policy/effective/policies.ts';
import { createConfirm } from '../../src/cluster/confirm-refusal.ts';
import type { FactsByImage, FactsWanted } from '../../src/cluster/facts-of-pod.ts';
import { placingOf, templatePullSecrets, type Placing } from '../../src/webhook/workloads.ts';
import type { NodeClasses } from '../../src/nodes/node-classes.ts';
import type { PullableNodes } from '../../src/cluster/pullable-nodes.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { JsonObject } from '../../src/http/json.ts';
import type { Subject } from './input.ts';
import type { PodContext } from './context.ts';
import type { PodFacts } from './pod-facts.ts';
import { messageOf } from '../../src/names/printable.ts';

/** Each is a GET. A pod names one node, or a few. */
const maxNamedNodes = 16;

/** A pod of the cluster: where it is, and what was decided. */
export interface RunningNow {
  readonly name: string;
  /** Absent while it waits. */
  readonly node?: string;
  readonly architecture?: string;
  /** From its record: the outcome when it was placed, and the architectures that were required then. */
  readonly outcome?: Outcome;
  readonly required?: readonly string[];
  /** Its own architectures were widened to `required`. */
  readonly widened?: true;
}

type PlacementInputOf = Omit<PlacementInput, 'facts' | 'nodes' | 'pullability'>;

export interface Explanation {
  readonly subject: Subject;
  /** The decision, or why the object is invalid. */
  readonly outcome:
    | {
        readonly decision: PlacementDecision;
        readonly patch: readonly Operation[];
        readonly patched: JsonObject;
        /** JSON pointer to the pod in the object; empty for a pod. */
        readonly basePath: string;
        /** Notes that hold for the object's images in its namespace. */
        readonly broken: readonly BrokenImage[];
        readonly running?: RunningNow;
        readonly pods: readonly RunningNow[];
        /** For the template of a workload, which stays as it is: what its next pods get. */
        readonly nextPods?: PlacementDecision;
      }
    | { readonly error: string };
}

/**
 * Creates a function that explains an object. It rejects only when `stop` aborts.
 * @param options.pullableNodes absent without agents
 */
export function createExplainer(
  options: Pick<PodFacts, 'factsOfPod' | 'brokenNotes' | 'budgetMs'> & {
    readonly pullableNodes: PullableNodes | undefined;
    readonly nodes: NodeClasses | undefined;
    readonly policies: Policies;
    readonly podContext: PodContext;
    readonly stop: AbortSignal;
  },
): (subject: Subject) => Promise<Explanation> {
  const { factsOfPod, brokenNotes, budgetMs, policies, podContext, stop } = options;
  const { pullableNodes, nodes: classes } = options;
  const confirm = createConfirm(factsOfPod, systemClock);

  async function decided(subject: Subject): Promise<Explanation['outcome']> {
    const placing = placingOf(subject.request, subject.kind);
    const { pod, template, basePath } = placing;
    const { namespace } = subject;
    const namespaceLabels = await podContext.namespaceLabels(namespace, stop);
    const { labels, ownerReferences } = pod.metadata ?? {};
    const owners = template === undefined ? ownerReferences : [ownerOfPods(subject)];
    const policyNow = () => policies.policyOf({ namespace, namespaceLabels, labels, owners });
    const policy = policyNow();
    const nodesOfPods = [subject.node, ...(subject.pods ?? []).map(({ spec }) => spec.nodeName)];
    const nodeArchitecture = await architecturesOfNamedNodes(pod.spec, nodesOfPods);
    const common = { pod, namespace, namespaceLabels, policy, nodeArchitecture };
    const input = template === undefined ? common : { ...common, template };
    const uses = imagesOf(pod.spec);
    const isSkipped = skipReasonOf(input, uses) !== undefined && namedNodeArchitecture(input) === undefined;
    // A pod in a file has not passed admission, which would add the pull secrets of its service account.
    const pullSecrets = templatePullSecrets(pod);
    const serviceAccount = serviceAccountOf(namespace, pod.spec.serviceAccountName);
    const wanted: FactsWanted = { uses, namespace, pullSecrets, serviceAccount, budgetMs };
    const facts: FactsByImage = isSkipped ? new Map() : await factsOfPod(wanted);
    const asksNodes = placing.kind === 'Pod' && policy.requirePullableNodes;
    const nodes = asksNodes ? await pullableNodes?.({ ...wanted, facts }) : undefined;
    // The lookups have shown whether agents answer.
    const settled = { ...input, policy: policyNow() };
    const decideBy = (known: FactsByImage, subject: PlacementInputOf = settled): PlacementDecision =>
      decide({
        ...subject,
        facts: (image) => known.get(image),
        ...(classes && { nodes: classes }),
        ...(nodes && { pullability: (image: string) => nodes.get(image) }),
      });
    const first = decideBy(facts);
    const confirming = first.required?.length === 0 ? confirm(wanted, facts) : undefined;
    const confirmed = confirming ? await confirming : facts;
    const decision = confirming ? decideBy(confirmed) : first;
    const isWorkload = template === 'workload' && decision.outcome !== 'denied';
    const nextPods = isWorkload ? decideBy(confirmed, { ...common, policy: settled.policy }) : undefined;
    const patch = patchPod(pod, decision, basePath);
    const patched = patchedObject(subject.request.object, patch);
    const { node } = subject;
    const onNode = runningPodWarnings({
      pod,
      oldPod: undefined,
      facts: (image) => facts.get(image),
      nodeArchitecture: node === undefined ? undefined : nodeArchitecture(node),
      nodes: classes,
    });
    return {
      decision: { ...decision, warnings: [...decision.warnings, ...onNode] },
      patch,
      patched,
      basePath,
      broken: brokenAmong(uses, facts, namespace),
      ...(isOfCluster(subject, pod) && { running: runningNow(pod, node, nodeArchitecture) }),
      ...(nextPods && { nextPods }),
      pods: (subject.pods ?? []).map((each) => runningNow(each, each.spec.nodeName, nodeArchitecture)),
    };
  }

  /** By digest; by its name if the digest is not known. */
  function brokenAmong(uses: readonly ImageUse[], facts: FactsByImage, namespace: string) {
    const now = systemClock.now();
    return brokenNotes.filter(({ namespaces, until, digest, image: noted }) => {
      if (until <= now || !namespaces.includes(namespace)) return false;
      return uses.some(({ image }) => {
        const known = facts.get(image)?.digest;
        return known === undefined ? image === noted : known === digest;
      });
    });
  }

  /** For the nodes that a pod names by `nodeName` or `matchFields`, and those that its pods run on. */
  async function architecturesOfNamedNodes(
    { nodeName, affinity }: PodSpec,
    running: readonly (string | undefined)[],
  ) {
    const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const pinned = (required?.nodeSelectorTerms ?? []).flatMap(nodesPinnedBy);
    const all = [nodeName, ...running, ...pinned].flatMap((name) => name || []);
    const names = [...new Set(all)].slice(0, maxNamedNodes);
    const found = await Promise.all(names.map((name) => podContext.nodeArchitecture(name, stop)));
    const byName = new Map(names.map((name, index) => [name, found[index]]));
    return (name: string): string | undefined => byName.get(name);
  }

  return async (subject) => {
    try {
      return { subject, outcome: await decided(subject) };
    } catch (error) {
      stop.throwIfAborted();
      // Placement reads fields without checking their types, so an invalid object can cause any error.
      return { subject, outcome: { error: messageOf(error) } };
    }
  };
}

/** A rollout counts a pod by its workload, which is the owner of a ReplicaSet if it is a Deployment. */
function ownerOfPods({ kind, name, request }: Subject): OwnerReference {
  const { group, version } = request.kind;
  return { apiVersion: `${group}/${version}`, kind, name, uid: '', controller: true };
}

/** Whether the pod has a node or a recorded decision. */
function isOfCluster({ kind, node }: Subject, pod: Placing['pod']): boolean {
  return kind === 'Pod' && (node !== undefined || decidedOutcome(pod) !== undefined);
}

function runningNow(
  pod: Placing['pod'],
  node: string | undefined,
  architectureOf: (node: string) => string | undefined,
): RunningNow {
  const { architectures: required, isWidened } = uncheckedRecord(pod);
  const outcome = decidedOutcome(pod);
  const architecture = node === undefined ? undefined : architectureOf(node);
  return {
    name: pod.metadata?.name ?? '',
    ...(node !== undefined && { node }),
    ...(architecture !== undefined && { architecture }),
    ...(outcome !== undefined && { outcome }),
    ...(required !== undefined && { required }),
    ...(isWidened && { widened: true as const }),
  };
}

export function isAdmitted({ outcome }: Explanation): boolean {
  return 'decision' in outcome && outcome.decision.outcome !== 'denied';
}

/**
 * Applies a patch to a copy of an object.
 * @throws JsonPatchError if an operation does not apply; the API server would refuse such an object
 */
function patchedObject(object: unknown, patch: readonly Operation[]): JsonObject {
  const operations = structuredClone(patch) as Parameters<typeof jsonPatch.applyPatch>[1];
  return jsonPatch.applyPatch(structuredClone(object) as JsonObject, operations, true).newDocument;
}
