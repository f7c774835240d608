/** Explains one object: the webhook's own steps, with time to wait for each image. */
import jsonPatch from 'fast-json-patch';
import type { Operation } from '../../src/placement/decision.ts';
import { decide } from '../../src/placement/decide.ts';
import type { OwnerReference, PodSpec } from '../../src/kube/api/objects.ts';
import { imagesOf, type ImageUse } from '../../src/placement/pod/images.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { decidedOutcome, uncheckedRecord } from '../../src/placement/record/read.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { nodesPinnedBy } from '../../src/placement/pod/terms.ts';
import { runningPodWarnings } from '../../src/placement/running-pod.ts';
import type { Policies } from '../../src/policy/effective/policies.ts';
import { placementOf } from '../../src/cluster/placement-of-pod.ts';
import { admittedPodOf, templatePullSecrets, type AdmittedPod } from '../../src/webhook/admitted-pod.ts';
import type { NodeClasses } from '../../src/nodes/node-classes.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { JsonObject } from '../../src/http/json.ts';
import type { Subject } from '../objects/input.ts';
import type { PodFacts } from '../lookups/pod-facts.ts';
import { messageOf } from '../../src/names/printable.ts';

/** Each is a GET. A pod names one node, or a few. */
const maxNamedNodes = 16;

export type RunningNow = ReturnType<typeof runningNow>;

export type Explanation = Awaited<ReturnType<ReturnType<typeof createExplainer>>>;

/** The created function rejects only when `stop` aborts. */
export function createExplainer(
  options: Pick<PodFacts, 'podContext' | 'factsOfPod' | 'pullableNodes' | 'brokenNotes' | 'budgetMs'> & {
    readonly nodes: NodeClasses | undefined;
    readonly policies: Policies;
    readonly stop: AbortSignal;
  },
) {
  const { factsOfPod, pullableNodes, brokenNotes, budgetMs, nodes, policies, podContext, stop } = options;

  async function decided(subject: Subject) {
    const { namespace, node } = subject;
    const { pod, template, basePath } = admittedPodOf(subject.request, subject.kind);
    const namespaceLabels = await podContext.namespaceLabels(namespace, stop);
    const nodesOfPods = [node, ...(subject.pods ?? []).map(({ spec }) => spec.nodeName)];
    const nodeArchitecture = await architecturesOfNamedNodes(pod.spec, nodesOfPods);
    const isOfPods = template === 'workload';
    const target = {
      pod,
      namespace,
      // A pod in a file has not passed admission, which would add the pull secrets of its service account.
      pullSecrets: templatePullSecrets(pod),
      isForPerson: true,
      ...(template !== undefined && { owners: [ownerOfPods(subject)] }),
      // A workload stays as it is; people ask what its pods get.
      ...(template !== undefined && !isOfPods && { template }),
    };
    const sources = {
      policies,
      namespaceLabels: () => namespaceLabels,
      nodeArchitecture,
      nodeClasses: () => nodes,
      factsOfPod,
      pullableNodes,
      clock: systemClock,
    };
    const { decision: decided, input } = await placementOf(target, sources, { budgetMs });
    const ofWorkload = isOfPods ? decide({ ...input, template: 'workload' }).reasons : [];
    const whyUnchanged = ofWorkload.filter(({ rule }) => rule === 'workload-template');
    const decision = { ...decided, reasons: [...whyUnchanged, ...decided.reasons] };
    const changed = isOfPods ? { object: pod, basePath: '' } : { object: subject.request.object, basePath };
    const patch = patchPod(pod, decision, changed.basePath);
    const onNode = runningPodWarnings({
      ...input,
      oldPod: undefined,
      nodeArchitecture: node === undefined ? undefined : nodeArchitecture(node),
    });
    const isOfCluster = subject.kind === 'Pod' && (node !== undefined || decidedOutcome(pod) !== undefined);
    return {
      decision: { ...decision, warnings: [...decision.warnings, ...onNode] },
      patch,
      patched: patchedObject(changed.object, patch),
      /** JSON pointer to the pod in `patched`; empty for a pod. */
      basePath: changed.basePath,
      /** Notes that hold for the object's images in its namespace. */
      broken: brokenAmong(imagesOf(pod.spec), input.facts, namespace),
      ...(isOfCluster && { running: runningNow(pod, node, nodeArchitecture) }),
      /** The object is a workload, which stays as it is: all of this is about its next pods. */
      isOfPods,
      pods: (subject.pods ?? []).map((each) => runningNow(each, each.spec.nodeName, nodeArchitecture)),
    };
  }

  /** Compares digests, or names if the digest is not known. */
  function brokenAmong(
    uses: readonly ImageUse[],
    facts: (image: string) => ImageFacts | undefined,
    namespace: string,
  ) {
    const now = systemClock.now();
    return brokenNotes.filter(({ namespaces, until, digest, image: noted }) => {
      if (until <= now || !namespaces.includes(namespace)) return false;
      return uses.some(({ image }) => {
        const known = facts(image)?.digest;
        return known === undefined ? image === noted : known === digest;
      });
    });
  }

  /** Looks at nodes that a pod names by `nodeName` or `matchFields`, and those that its pods run on. */
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

  return async (subject: Subject) => {
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

/** @param node absent while the pod waits */
function runningNow(
  pod: AdmittedPod['pod'],
  node: string | undefined,
  architectureOf: (node: string) => string | undefined,
) {
  const { architectures: required, isWidened } = uncheckedRecord(pod);
  return {
    name: pod.metadata?.name ?? '',
    node,
    architecture: node === undefined ? undefined : architectureOf(node),
    /** When it was placed, with the architectures that were required then. */
    outcome: decidedOutcome(pod),
    required,
    widened: isWidened || undefined,
  };
}

export function isAdmitted({ outcome }: Explanation): boolean {
  return 'decision' in outcome && outcome.decision.outcome !== 'denied';
}

/** Failures after which a later lookup, or one with another credential, may succeed. */
const unanswered: ReadonlySet<string> = new Set([
  'not-found',
  'unauthorized',
  'forbidden',
  'rate-limited',
  'unavailable',
  'timeout',
]);

/** Whether each image was looked up, or the configuration forbids that. */
export function isLookedUp({ outcome }: Explanation): boolean {
  if ('error' in outcome) return true;
  return outcome.decision.images.every(({ unknown, facts }) => {
    if (unknown === undefined || facts?.source === 'override') return true;
    return facts?.error !== undefined && !unanswered.has(facts.error.code);
  });
}

/** @throws JsonPatchError if an operation does not apply; the API server would refuse such an object */
function patchedObject(object: unknown, patch: readonly Operation[]): JsonObject {
  const operations = structuredClone(patch) as Parameters<typeof jsonPatch.applyPatch>[1];
  return jsonPatch.applyPatch(structuredClone(object) as JsonObject, operations, true).newDocument;
}
