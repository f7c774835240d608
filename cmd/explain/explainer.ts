/** Explains one object: the webhook's own steps, with time to wait for each image. */
import { serviceAccountOf } from '../../src/credentials/credential.ts';
import type { Operation, PlacementDecision } from '../../src/placement/decision.ts';
import { decide } from '../../src/placement/decide.ts';
import { imagesOf } from '../../src/placement/pod/images.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { newImagesOf, runningPodWarnings } from '../../src/placement/running-pod.ts';
import { skipReasonOf } from '../../src/placement/rules/skip.ts';
import type { Policies } from '../../src/policy/effective/policies.ts';
import type { Policy } from '../../src/policy/effective/policy.ts';
import { createConfirm } from '../../src/cluster/confirm-refusal.ts';
import type { FactsByImage, FactsOfPod, FactsWanted } from '../../src/cluster/facts-of-pod.ts';
import { placingOf, type Placing } from '../../src/webhook/workloads.ts';
import type { PullableNodes, PullabilityByImage } from '../../src/cluster/pullable-nodes.ts';
import { systemClock } from '../../src/async/clock.ts';
import { templatePullSecrets } from '../../src/webhook/workloads.ts';
import type { JsonObject } from '../../src/webhook/validate-pod.ts';
import type { Subject } from './input.ts';
import { patchedObject } from './patched.ts';
import type { PodContext } from './context.ts';

export interface Explanation {
  readonly subject: Subject;
  /** The decision, or why the object is invalid. */
  readonly outcome:
    | {
        readonly decision: PlacementDecision;
        readonly patch: readonly Operation[];
        /** The object with the patch applied. */
        readonly patched: JsonObject;
        /** JSON pointer to the pod in the object; empty for a pod. */
        readonly basePath: string;
        /** Warnings of the decision, and about the images of a running pod. */
        readonly warnings: readonly string[];
      }
    | { readonly error: string };
}

export interface ExplainerOptions {
  readonly factsOfPod: FactsOfPod;
  /** Absent without agents. */
  readonly pullableNodes?: PullableNodes | undefined;
  readonly policies: Policies;
  readonly surroundings: PodContext;
  /** Time limit for the images of one object, milliseconds. */
  readonly budgetMs: number;
  readonly stop: AbortSignal;
}

/** Creates a function that explains an object. It rejects only when `stop` aborts. */
export function createExplainer(options: ExplainerOptions): (subject: Subject) => Promise<Explanation> {
  const { factsOfPod, pullableNodes, policies, surroundings, budgetMs, stop } = options;
  const confirm = createConfirm(factsOfPod, systemClock);

  async function decided(subject: Subject): Promise<Explanation['outcome']> {
    const placing = placingOf(subject.request, subject.kind);
    const { pod, template, basePath } = placing;
    const { namespace } = subject;
    const namespaceLabels = await surroundings.namespaceLabels(namespace, stop);
    const policy = policies.policyOf({ namespace, namespaceLabels, labels: pod.metadata?.labels });
    const input = { pod, namespace, namespaceLabels, policy, ...(template !== undefined && { template }) };
    const uses = imagesOf(pod.spec);
    const isSkipped = skipReasonOf(input, uses) !== undefined;
    const serviceAccount = serviceAccountOf(namespace, pod.spec.serviceAccountName);
    const wanted = { uses, namespace, pullSecrets: pullSecretsOf(placing), serviceAccount, budgetMs };
    const facts: FactsByImage = isSkipped ? new Map() : await factsOfPod(wanted);
    const nodes = await nodesOf(subject, policy, wanted, facts);
    const decideBy = (known: FactsByImage): PlacementDecision =>
      decide({
        ...input,
        facts: (image) => known.get(image),
        ...(nodes && { pullability: (image: string) => nodes.get(image) }),
      });
    const first = decideBy(facts);
    const asked = first.required?.length === 0 ? confirm(wanted, facts) : undefined;
    const decision = asked ? decideBy(await asked) : first;
    const patch = patchPod(pod, decision, { basePath });
    const warnings = [...decision.warnings, ...(await warningsOfRunning(placing, namespace))];
    const patched = patchedObject(subject.request.object, patch);
    return { decision, patch, patched, basePath, warnings };
  }

  async function nodesOf(
    { kind }: Subject,
    policy: Policy,
    wanted: FactsWanted,
    facts: FactsByImage,
  ): Promise<PullabilityByImage | undefined> {
    if (kind !== 'Pod' || !policy.requirePullableNodes) return undefined;
    return pullableNodes?.({ ...wanted, facts });
  }

  /** A running pod cannot be placed any more, but its images may not run on its node. */
  async function warningsOfRunning(placing: Placing, namespace: string): Promise<readonly string[]> {
    const { kind, pod } = placing;
    if (kind !== 'Pod' || !pod.spec.nodeName) return [];
    const nodeArchitecture = await surroundings.nodeArchitecture(pod.spec.nodeName, stop);
    if (nodeArchitecture === undefined) return [];
    const uses = newImagesOf(pod, undefined);
    const serviceAccount = serviceAccountOf(namespace, pod.spec.serviceAccountName);
    const pullSecrets = pullSecretsOf(placing);
    const facts = await factsOfPod({ uses, namespace, pullSecrets, serviceAccount, budgetMs });
    return runningPodWarnings({
      pod,
      oldPod: undefined,
      nodeArchitecture,
      facts: (image) => facts.get(image),
    });
  }

  return async (subject) => {
    try {
      return { subject, outcome: await decided(subject) };
    } catch (error) {
      stop.throwIfAborted();
      // Placement reads fields without checking their types, so an invalid object can cause any error.
      return { subject, outcome: { error: error instanceof Error ? error.message : String(error) } };
    }
  };
}

/** A pod in a file has not passed admission, which would add the pull secrets of its service account. */
function pullSecretsOf({ pod }: Placing): Placing['pullSecrets'] {
  return templatePullSecrets(pod);
}

/** Whether archwright would admit the object. */
export function isAdmitted({ outcome }: Explanation): boolean {
  return 'decision' in outcome && outcome.decision.outcome !== 'denied';
}
