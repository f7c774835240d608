/**
 * Answers admission requests by kind and operation:
 * - a pod that is created: decided and patched; one that names its node: a warning if that node cannot run
 *   it;
 * - a running pod that gets an image (an update, an ephemeral container): a warning if its node cannot run
 *   it;
 * - a DaemonSet: its template decided and patched, so that it starts only where it can run;
 * - other workloads: the warnings that their pods would get, which only their controller would see;
 * - anything else, and any object after an error: let through.
 */
import type { AdmissionRequest, AdmissionResponse } from '../kube/api/objects.ts';
import { serviceAccountOf } from '../credentials/credential.ts';
import type { ImageFacts } from '../images/facts/facts.ts';
import { decide } from '../placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../placement/decision.ts';
import { imagesOf } from '../placement/pod/images.ts';
import { newImagesOf, runningPodWarnings } from '../placement/running-pod.ts';
import { namedNodeArchitecture, optOutOf, skipReasonOf } from '../placement/rules/skip.ts';
import type { Policies } from '../policy/effective/policies.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { CurrentNodeClasses } from '../cluster/node-classes.ts';
import type { RecordSealer } from '../cluster/record-seal.ts';
import { createConfirm, type Confirm } from '../cluster/confirm-refusal.ts';
import {
  factsWanted,
  type FactsByImage,
  type FactsOfPod,
  type FactsWanted,
} from '../cluster/facts-of-pod.ts';
import type { AdmissionCounters, AdmissionKind } from './metrics.ts';
import type { PullableNodes } from '../cluster/pullable-nodes.ts';
import { Responses } from './responses.ts';
import { podOf } from './validate-pod.ts';
import {
  hasController,
  isProvisionalTemplate,
  isBeingDeleted,
  kindOf,
  metadataOf,
  placingOf,
  templateUnchanged,
  type Placing,
} from './workloads.ts';

export interface MutatorOptions {
  readonly factsOfPod: FactsOfPod;
  readonly pullableNodes: PullableNodes | undefined;
  readonly policies: Policies;
  readonly cluster: Cluster | undefined;
  readonly nodeClasses?: CurrentNodeClasses | undefined;
  readonly counters: AdmissionCounters;
  /** Absent: records are written, and accepted, without a seal. */
  readonly recordSealer?: (() => RecordSealer) | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** A promise only if the answer has to wait for images. */
type Answer = AdmissionResponse | Promise<AdmissionResponse>;

interface Review {
  readonly request: AdmissionRequest;
  readonly placing: Placing;
  readonly input: Omit<PlacementInput, 'facts'>;
  readonly wanted: FactsWanted;
  /** Monotonic time at which the budget ends. */
  readonly deadline: number;
}

const noLabels: Readonly<Record<string, string>> = {};

export class Mutator {
  readonly #options: MutatorOptions;
  readonly #responses: Responses;
  readonly #confirm: Confirm;

  constructor(options: MutatorOptions) {
    const { factsOfPod, counters, clock, log } = options;
    this.#options = options;
    this.#responses = new Responses(counters, log);
    this.#confirm = createConfirm(factsOfPod, clock);
  }

  /** Answers a request. Never throws. `budgetMs` limits the wait for images that memory does not know. */
  mutate(request: AdmissionRequest, budgetMs: number): Answer {
    try {
      const answer = this.#route(request, budgetMs);
      if (!(answer instanceof Promise)) return answer;
      return answer.catch((error: unknown) => this.#responses.fault(request, error));
    } catch (error) {
      return this.#responses.fault(request, error);
    }
  }

  #route(request: AdmissionRequest, budgetMs: number): Answer {
    const { operation, subResource, object } = request;
    const kind = kindOf(request);
    const creates = operation === 'CREATE';
    const ignore = (): AdmissionResponse => this.#responses.ignored(request, kind);
    if (kind === 'other' || (!creates && operation !== 'UPDATE')) return ignore();
    // The removal of the last finalizer is an update and must never fail.
    if (isBeingDeleted(object)) return ignore();
    if (kind === 'Pod') {
      if (subResource === 'ephemeralcontainers' || (!creates && !subResource))
        return this.#warnRunningPod(request, budgetMs);
      return subResource ? ignore() : this.#place(request, kind, budgetMs);
    }
    if (subResource || (templateUnchanged(request) && !isProvisionalTemplate(request, kind))) return ignore();
    // A workload with a controller was decided with its owner, when a person applied that.
    if (kind !== 'DaemonSet' && hasController(object)) return ignore();
    return this.#place(request, kind, budgetMs);
  }

  #place(request: AdmissionRequest, kind: AdmissionKind, budgetMs: number): Answer {
    const placing = placingOf(request, kind);
    const { pod, pullSecrets, template, before } = placing;
    const namespace = request.namespace ?? pod.metadata?.namespace ?? '';
    const seal = this.#options
      .recordSealer?.()
      .sealOf(kind === 'Pod' ? 'Pod' : 'DaemonSet', namespace, metadataOf(request.object));
    const { factsOfPod, cluster, clock } = this.#options;
    const nodes = this.#options.nodeClasses?.();
    const input = {
      pod,
      namespace,
      ...this.#policyOf(namespace, pod),
      ...(cluster && { nodeArchitecture: (node: string) => cluster.nodeArchitecture(node) }),
      ...(template !== undefined && { template }),
      ...(before !== undefined && { before }),
      ...(nodes && { nodes }),
      ...(seal && { seal }),
    };
    const uses = imagesOf(pod.spec);
    const isSkipped = skipReasonOf(input, uses) !== undefined;
    // If no person would read the warning, no image is looked up for it.
    const isForWarning = namedNodeArchitecture(input) !== undefined && !hasController(request.object);
    if (isSkipped && !isForWarning)
      return this.#responses.decided(request, placing, input, decideBy(input, new Map()));
    const serviceAccount = serviceAccountOf(namespace, pod.spec.serviceAccountName);
    const memoryOnly = isDryRun(request);
    const wanted = { uses, namespace, pullSecrets, serviceAccount, budgetMs, memoryOnly };
    const review = { request, placing, input, wanted, deadline: clock.monotonic() + budgetMs };
    return after(factsOfPod(wanted), (facts) =>
      isSkipped ? this.#decide(review, facts) : this.#withNodes(review, facts),
    );
  }

  #withNodes(review: Review, facts: FactsByImage): Answer {
    const { placing, input, wanted, deadline } = review;
    const { pullableNodes, clock } = this.#options;
    if (wanted.memoryOnly || placing.kind !== 'Pod' || !pullableNodes || !input.policy.requirePullableNodes)
      return this.#decide(review, facts);
    const nodes = pullableNodes({ ...wanted, facts, budgetMs: deadline - clock.monotonic() });
    return after(nodes, (byImage) =>
      this.#decide({ ...review, input: { ...input, pullability: (image) => byImage.get(image) } }, facts),
    );
  }

  /** Decides; facts that share no architecture are looked up once more before they refuse the pod. */
  #decide(review: Review, facts: FactsByImage): Answer {
    const { request, placing, input, wanted, deadline } = review;
    const decision = decideBy(input, facts);
    const answer = (decided: PlacementDecision): AdmissionResponse =>
      this.#responses.decided(request, placing, input, decided);
    if (decision.required?.length !== 0 || wanted.memoryOnly) return answer(decision);
    const budgetMs = Math.max(1, deadline - this.#options.clock.monotonic());
    const confirmed = this.#confirm({ ...wanted, budgetMs }, facts);
    return confirmed ? confirmed.then((newer) => answer(decideBy(input, newer))) : answer(decision);
  }

  #warnRunningPod(request: AdmissionRequest, budgetMs: number): Answer {
    const { cluster, factsOfPod, nodeClasses } = this.#options;
    const nodes = nodeClasses?.();
    const pod = podOf(request.object);
    const oldPod = (request.oldObject ?? undefined) === undefined ? undefined : podOf(request.oldObject);
    const node = pod.spec.nodeName;
    const nodeArchitecture = node ? cluster?.nodeArchitecture(node) : undefined;
    const namespace = request.namespace ?? '';
    const optOut = optOutOf({ pod, namespace, ...this.#policyOf(namespace, pod) });
    const uses = nodeArchitecture === undefined || optOut ? [] : newImagesOf(pod, oldPod);
    if (uses.length === 0) return this.#responses.ignored(request, 'Pod');
    const wanted = { ...factsWanted(pod, namespace, uses, budgetMs), memoryOnly: isDryRun(request) };
    return after(factsOfPod(wanted), (found) => {
      const facts = (image: string): ImageFacts | undefined => found.get(image);
      const warnings = runningPodWarnings({ pod, oldPod, nodeArchitecture, nodes, facts });
      return this.#responses.ignored(request, 'Pod', warnings);
    });
  }

  #policyOf(namespace: string, { metadata }: PlacementInput['pod']) {
    const { cluster, policies } = this.#options;
    const namespaceLabels = cluster?.namespaceLabels(namespace) ?? noLabels;
    const { labels, ownerReferences: owners } = metadata ?? {};
    const policy = policies.policyOf({ namespace, namespaceLabels, labels, owners });
    return { namespaceLabels, policy };
  }
}

/** A dry run precedes quotas and validation, and leaves no trace. It must not cause requests. */
function isDryRun({ dryRun }: AdmissionRequest): boolean {
  return dryRun === true;
}

function decideBy(input: Review['input'], facts: FactsByImage): PlacementDecision {
  return decide({ ...input, facts: (image) => facts.get(image) });
}

/** Continues at once with a value, later with a promise: a warm admission never waits for a microtask. */
function after<T>(value: T | Promise<T>, step: (value: T) => Answer): Answer {
  return value instanceof Promise ? value.then(step) : step(value);
}
