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
import { newImagesOf, runningPodWarnings } from '../placement/running-pod.ts';
import { optOutOf } from '../placement/rules/skip.ts';
import type { Log } from '../telemetry/log.ts';
import { podFactsRequestOf } from '../cluster/facts-of-pod.ts';
import {
  placementInputOf,
  placementOf,
  type PlacementSources,
  type Placement,
} from '../cluster/placement-of-pod.ts';
import type { SealOf } from '../cluster/record-seal.ts';
import type { AdmissionCounters, AdmissionKind } from './metrics.ts';
import {
  admittedPodOf,
  hasController,
  InvalidObject,
  isProvisionalTemplate,
  isBeingDeleted,
  kindOf,
  metadataOf,
  podOf,
  templateUnchanged,
  type AdmittedPod,
} from './admitted-pod.ts';
import { boundedWarnings, printable } from '../names/printable.ts';
import type { PlacementDecision } from '../placement/decision.ts';
import type { Rule } from '../placement/rules/rules.ts';
import { patchPod } from '../placement/patch/patch.ts';

export interface MutatorOptions {
  readonly sources: PlacementSources;
  readonly counters: AdmissionCounters;
  /** Absent: records are written, and accepted, without a seal. */
  readonly sealOf?: SealOf | undefined;
  readonly log: Log;
}

const faultWarning =
  'archwright: this object could not be understood and was let through without a placement';

const noFacts = (): undefined => undefined;

export class Mutator {
  readonly #options: MutatorOptions;

  constructor(options: MutatorOptions) {
    this.#options = options;
  }

  /** Answers a request. Never rejects. `budgetMs` limits the wait for images that the cache does not have. */
  async mutate(request: AdmissionRequest, budgetMs: number): Promise<AdmissionResponse> {
    try {
      return await this.#route(request, budgetMs);
    } catch (error) {
      return this.#fault(request, error);
    }
  }

  async #route(request: AdmissionRequest, budgetMs: number): Promise<AdmissionResponse> {
    const { operation, subResource, object } = request;
    const kind = kindOf(request);
    const creates = operation === 'CREATE';
    const ignore = (): AdmissionResponse => this.#ignored(request, kind);
    if (kind === 'other' || (!creates && operation !== 'UPDATE')) return ignore();
    // The removal of the last finalizer is an update and must never fail.
    if (isBeingDeleted(object)) return ignore();
    if (kind === 'Pod') {
      if (subResource === 'ephemeralcontainers' || (!creates && !subResource))
        return await this.#warnRunningPod(request, budgetMs);
      return subResource ? ignore() : await this.#place(request, kind, budgetMs);
    }
    if (subResource || (templateUnchanged(request) && !isProvisionalTemplate(request, kind))) return ignore();
    // A workload with a controller was decided with its owner, when a person applied that.
    if (kind !== 'DaemonSet' && hasController(object)) return ignore();
    return await this.#place(request, kind, budgetMs);
  }

  async #place(request: AdmissionRequest, kind: AdmissionKind, budgetMs: number): Promise<AdmissionResponse> {
    const { sources, sealOf } = this.#options;
    const admitted = admittedPodOf(request, kind);
    const { pod } = admitted;
    const namespace = request.namespace ?? pod.metadata?.namespace ?? '';
    const sealedKind = kind === 'Pod' ? 'Pod' : 'DaemonSet';
    const seal = sealOf?.(sealedKind, namespace, metadataOf(request.object));
    const target = {
      ...admitted,
      namespace,
      isForPerson: !hasController(request.object),
      ...(seal && { seal }),
    };
    // A dry run precedes quotas and validation, and leaves no trace. It must not cause requests.
    const placement = await placementOf(target, sources, { budgetMs, cacheOnly: request.dryRun === true });
    return this.#decided(request, admitted, placement);
  }

  async #warnRunningPod(request: AdmissionRequest, budgetMs: number): Promise<AdmissionResponse> {
    const { sources } = this.#options;
    const pod = podOf(request.object);
    const oldPod = (request.oldObject ?? undefined) === undefined ? undefined : podOf(request.oldObject);
    const node = pod.spec.nodeName;
    const nodeArchitecture = node ? sources.nodeArchitecture?.(node) : undefined;
    const namespace = request.namespace ?? '';
    const ofPod = podFactsRequestOf(pod, namespace, newImagesOf(pod, oldPod), budgetMs);
    const input = placementInputOf({ pod, namespace, pullSecrets: ofPod.pullSecrets }, sources, noFacts);
    if (nodeArchitecture === undefined || ofPod.uses.length === 0 || optOutOf(input) !== undefined)
      return this.#ignored(request, 'Pod');
    const found = await sources.factsOfPod({ ...ofPod, cacheOnly: request.dryRun === true });
    const warnings = runningPodWarnings({
      pod,
      oldPod,
      nodeArchitecture,
      nodes: input.nodes,
      facts: (image) => found.get(image),
    });
    return this.#ignored(request, 'Pod', warnings);
  }

  /** Each answer is counted when it is made. */
  #ignored(
    request: AdmissionRequest,
    kind: AdmissionKind,
    warnings: readonly string[] = [],
  ): AdmissionResponse {
    this.#options.counters.admitted(kind, 'ignored');
    return { uid: request.uid, allowed: true, ...this.#warnings(warnings) };
  }

  /** The object is let through, whatever went wrong. */
  #fault(request: AdmissionRequest, error: unknown): AdmissionResponse {
    const kind = kindOf(request);
    this.#options.counters.admitted(kind, 'fault');
    const { uid, namespace } = request;
    this.#options.log.error(
      { err: error, uid, kind, namespace, ...namesOf(request) },
      'admission failed, the object was let through',
    );
    const warning = error instanceof InvalidObject ? `${faultWarning}: ${error.message}` : faultWarning;
    return { uid: request.uid, allowed: true, ...this.#warnings([warning]) };
  }

  #decided(
    request: AdmissionRequest,
    { kind, pod, basePath }: AdmittedPod,
    { decision, input: { namespace, pullability } }: Placement,
  ): AdmissionResponse {
    const { uid } = request;
    this.#count(kind, decision);
    if (pullability) this.#countNodes(decision);
    if (this.#options.log.isLevelEnabled('debug')) {
      const { outcome, required, excludedNodes, skip } = decision;
      this.#options.log.debug(
        { uid, kind, namespace, ...namesOf(request), outcome, required, excludedNodes, skip },
        'admission decided',
      );
    }
    const warnings = this.#warnings(decision.warnings);
    if (decision.outcome === 'denied') {
      const message = decision.message ?? 'no architecture can run all images';
      return { uid, allowed: false, status: { message, code: 403 }, ...warnings };
    }
    const operations = patchPod(pod, decision, basePath);
    if (operations.length === 0) return { uid, allowed: true, ...warnings };
    const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
    return { uid, allowed: true, patchType: 'JSONPatch', patch, ...warnings };
  }

  #count(kind: AdmissionKind, decision: PlacementDecision): void {
    this.#options.counters.admitted(kind, decision.outcome);
    if (decision.widened) this.#options.counters.widened.inc();
    if (decision.skip !== undefined) this.#options.counters.skipped(decision.skip);
    for (const { unknown, facts } of decision.images) {
      const code = unknown ?? facts?.error?.code;
      if (code !== undefined) this.#options.counters.unknown(code);
    }
  }

  #countNodes({ excludedNodes, reasons }: PlacementDecision): void {
    const has = (wanted: Rule): boolean => reasons.some(({ rule }) => rule === wanted);
    if (excludedNodes.length > 0 && has('pullable-nodes')) this.#options.counters.unpullable('excluded');
    else if (has('pullable-nodes-left-out')) this.#options.counters.unpullable('kept');
  }

  #warnings(texts: readonly string[]): Pick<AdmissionResponse, 'warnings'> {
    if (texts.length === 0) return {};
    this.#options.counters.warnings.inc(texts.length);
    return { warnings: boundedWarnings(texts) };
  }
}

/** A pod of a controller has no name yet, but the beginning of one. The object may be anything. */
function namesOf({ object }: AdmissionRequest) {
  const { name, generateName }: { name?: unknown; generateName?: unknown } = metadataOf(object) ?? {};
  const shown = (text: unknown) => (typeof text === 'string' ? printable(text, 253) : undefined);
  return { name: shown(name), generateName: shown(generateName) };
}
