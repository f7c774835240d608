/**
 * What an admission gets, by kind and operation:
 * - a pod that is created: decided and patched;
 * - a running pod that gets an image (an update, an ephemeral container): a warning where its node cannot run it;
 * - a DaemonSet: its template decided and patched, so that it starts only where it can run;
 * - other workloads: a warning where the images of their template share no architecture;
 * - anything else: let through.
 *
 * Whatever goes wrong in here, the object is let through unpatched, with a warning and the request's uid.
 */
import type { AdmissionRequest, AdmissionResponse } from '../kube/api/objects.ts';
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import { serviceAccountOf } from '../credentials/service-account.ts';
import { decide } from '../placement/decide.ts';
import type { Operation, PlacementDecision, PlacementInput } from '../placement/decision.ts';
import { imagesOf } from '../placement/pod/images.ts';
import { patchPod } from '../placement/patch/patch.ts';
import { newImagesOf, runningPodWarnings } from '../placement/running-pod.ts';
import { optOutOf, skipReasonOf } from '../placement/rules/skip.ts';
import { boundedWarnings } from '../names/printable.ts';
import type { Policies } from '../policy/effective/policies.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { createConfirm } from '../cluster/confirm-refusal.ts';
import type { FactsByImage, FactsOfPod, FactsWanted } from '../cluster/facts-of-pod.ts';
import type { AdmissionCounters, AdmissionKind } from './metrics.ts';
import { placingOf, type Placing } from './placing.ts';
import type { PullableNodes } from '../cluster/pullable-nodes.ts';
import { podOf, InvalidObject } from './validate-pod.ts';
import { hasController, isBeingDeleted, kindOf, templateUnchanged } from './workloads.ts';

/** Answers a request; waits only for images that memory does not know, `budgetMs` at most. Never throws. */
export type Mutate = (
  request: AdmissionRequest,
  budgetMs: number,
) => AdmissionResponse | Promise<AdmissionResponse>;

export interface MutateOptions {
  readonly factsOfPod: FactsOfPod;
  /** Absent where there are no agents to ask. */
  readonly pullableNodes: PullableNodes | undefined;
  readonly policies: Policies;
  readonly cluster: Cluster | undefined;
  readonly counters: AdmissionCounters;
  readonly clock: Clock;
  readonly log: Log;
}

type Again = (facts: FactsByImage) => Promise<FactsByImage> | undefined;

const faultWarning =
  'archwright: this object could not be understood and was let through without a placement';
const noLabels: Readonly<Record<string, string>> = {};
const noFacts: FactsByImage = new Map();

/** Makes the answerer; it holds nothing that needs to be closed. */
export function createMutate(options: MutateOptions): Mutate {
  const { factsOfPod, pullableNodes, policies, cluster, counters, clock, log } = options;
  const confirm = createConfirm({ factsOfPod, clock });

  function mutate(
    request: AdmissionRequest,
    budgetMs: number,
  ): AdmissionResponse | Promise<AdmissionResponse> {
    try {
      const answer = route(request, budgetMs);
      return answer instanceof Promise ? answer.catch((error: unknown) => fault(request, error)) : answer;
    } catch (error) {
      return fault(request, error);
    }
  }

  function route(
    request: AdmissionRequest,
    budgetMs: number,
  ): AdmissionResponse | Promise<AdmissionResponse> {
    const kind = kindOf(request);
    const creates = request.operation === 'CREATE';
    if (kind === 'other' || (!creates && request.operation !== 'UPDATE')) return ignore(request, kind);
    // Taking the last finalizer away is an update; nothing may stand in its way.
    if (isBeingDeleted(request.object)) return ignore(request, kind);
    if (kind === 'Pod') {
      if (request.subResource === 'ephemeralcontainers' || (!creates && !request.subResource)) {
        return adviseRunningPod(request, budgetMs);
      }
      return request.subResource ? ignore(request, kind) : place(request, kind, budgetMs);
    }
    if (request.subResource || templateUnchanged(request)) return ignore(request, kind);
    if (kind === 'DaemonSet') return place(request, kind, budgetMs);
    // Its owner was looked at when a person applied that.
    return hasController(request.object) ? ignore(request, kind) : place(request, kind, budgetMs);
  }

  function place(
    request: AdmissionRequest,
    kind: Exclude<AdmissionKind, 'other'>,
    budgetMs: number,
  ): AdmissionResponse | Promise<AdmissionResponse> {
    const placing = placingOf(request, kind);
    const { pod, pullSecrets, template, before } = placing;
    const namespace = request.namespace ?? pod.metadata?.namespace ?? '';
    const namespaceLabels = labelsOf(namespace);
    const input = {
      pod,
      namespace,
      namespaceLabels,
      policy: policies.policyOf({ namespace, namespaceLabels, labels: pod.metadata?.labels }),
      ...(template !== undefined && { template }),
      ...(before !== undefined && { before }),
    };
    const uses = imagesOf(pod.spec);
    if (skipReasonOf(input, uses) !== undefined) return settle(request, placing, input, noFacts);
    const serviceAccount = serviceAccountOf(namespace, pod.spec.serviceAccountName);
    const wanted = { uses, namespace, pullSecrets, serviceAccount, budgetMs };
    const end = clock.monotonic() + budgetMs;
    const facts = factsOfPod(wanted);
    const again: Again = (found) =>
      confirm({ ...wanted, budgetMs: Math.max(1, end - clock.monotonic()) }, found);
    if (kind === 'Pod' && pullableNodes && input.policy.requirePullableNodes)
      return settleWithNodes(request, placing, input, wanted, facts, { nodesOf: pullableNodes, again });
    if (facts instanceof Promise) return facts.then((found) => settle(request, placing, input, found, again));
    return settle(request, placing, input, facts, again);
  }

  /** The nodes have what is left of the budget when the facts are there. */
  async function settleWithNodes(
    request: AdmissionRequest,
    placing: Placing,
    input: Omit<PlacementInput, 'facts'>,
    wanted: FactsWanted,
    asked: FactsByImage | Promise<FactsByImage>,
    { nodesOf, again }: { readonly nodesOf: PullableNodes; readonly again: Again },
  ): Promise<AdmissionResponse> {
    const end = clock.monotonic() + wanted.budgetMs;
    const facts = await asked;
    const nodes = await nodesOf({ ...wanted, facts, budgetMs: end - clock.monotonic() });
    return settle(request, placing, { ...input, pullability: (image) => nodes.get(image) }, facts, again);
  }

  /** @param again asks once more for facts that are about to refuse the pod */
  function settle(
    request: AdmissionRequest,
    placing: Placing,
    input: Omit<PlacementInput, 'facts'>,
    facts: FactsByImage,
    again?: Again,
  ): AdmissionResponse | Promise<AdmissionResponse> {
    const { kind, pod, basePath } = placing;
    const decision = decide({ ...input, facts: (image) => facts.get(image) });
    const asked = decision.required?.length === 0 ? again?.(facts) : undefined;
    if (asked) return asked.then((newer) => settle(request, placing, input, newer));
    count(kind, decision);
    if (input.pullability) countNodes(decision);
    if (log.isLevelEnabled('debug')) {
      const { outcome, required, excludedNodes, skip } = decision;
      log.debug(
        { uid: request.uid, kind, namespace: input.namespace, outcome, required, excludedNodes, skip },
        'admission decided',
      );
    }
    if (decision.outcome === 'denied') {
      const message = decision.message ?? 'no architecture can run all images';
      return {
        uid: request.uid,
        allowed: false,
        status: { message, code: 403 },
        ...warnings(decision.warnings),
      };
    }
    return {
      uid: request.uid,
      allowed: true,
      ...patch(patchPod(pod, decision, { basePath })),
      ...warnings(decision.warnings),
    };
  }

  function adviseRunningPod(
    request: AdmissionRequest,
    budgetMs: number,
  ): AdmissionResponse | Promise<AdmissionResponse> {
    const pod = podOf(request.object);
    const oldPod =
      request.oldObject === undefined || request.oldObject === null ? undefined : podOf(request.oldObject);
    const node = pod.spec.nodeName;
    const nodeArchitecture = node ? cluster?.nodeArchitecture(node) : undefined;
    const namespace = request.namespace ?? '';
    const namespaceLabels = labelsOf(namespace);
    const policy = policies.policyOf({ namespace, namespaceLabels, labels: pod.metadata?.labels });
    const leftAlone = optOutOf({ pod, namespace, namespaceLabels, policy });
    const uses = nodeArchitecture === undefined || leftAlone ? [] : newImagesOf(pod, oldPod);
    if (uses.length === 0) return ignore(request, 'Pod');

    function advise(facts: FactsByImage): AdmissionResponse {
      const texts = runningPodWarnings({ pod, oldPod, nodeArchitecture, facts: (image) => facts.get(image) });
      counters.admitted('Pod', 'ignored');
      return { uid: request.uid, allowed: true, ...warnings(texts) };
    }
    const facts = factsOfPod({
      uses,
      namespace,
      pullSecrets: { names: pullSecretNames(pod.spec) },
      serviceAccount: serviceAccountOf(namespace, pod.spec.serviceAccountName),
      budgetMs,
    });
    return facts instanceof Promise ? facts.then(advise) : advise(facts);
  }

  function labelsOf(namespace: string): Readonly<Record<string, string>> {
    return cluster?.namespaceLabels(namespace) ?? noLabels;
  }

  function ignore(request: AdmissionRequest, kind: AdmissionKind): AdmissionResponse {
    counters.admitted(kind, 'ignored');
    return { uid: request.uid, allowed: true };
  }

  function fault(request: AdmissionRequest, error: unknown): AdmissionResponse {
    counters.faults.inc();
    counters.admitted(kindOf(request), 'fault');
    const text = error instanceof InvalidObject ? `${faultWarning}: ${error.message}` : faultWarning;
    log.error(
      { err: error, uid: request.uid, kind: kindOf(request) },
      'admission failed, the object was let through',
    );
    return { uid: request.uid, allowed: true, ...warnings([text]) };
  }

  function count(kind: AdmissionKind, decision: PlacementDecision): void {
    counters.admitted(kind, decision.outcome);
    if (decision.skip !== undefined) counters.skipped(decision.skip);
    for (const { unknown, facts } of decision.images) {
      const code = unknown ?? facts?.error?.code;
      if (code !== undefined) counters.unknown(code);
    }
  }

  function countNodes({ excludedNodes, reasons }: PlacementDecision): void {
    if (excludedNodes.length > 0) counters.nodesExcluded.inc();
    else if (reasons.some(({ rule }) => rule === 'pullable-nodes-left-out')) counters.nodesKept.inc();
  }

  function warnings(texts: readonly string[]): { warnings?: readonly string[] } {
    if (texts.length === 0) return {};
    counters.warnings.inc(texts.length);
    return { warnings: boundedWarnings(texts) };
  }

  return mutate;
}

function patch(operations: readonly Operation[]): Pick<AdmissionResponse, 'patch' | 'patchType'> {
  if (operations.length === 0) return {};
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(operations)).toString('base64') };
}
