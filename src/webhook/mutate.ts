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
import { placementInputOf, placementOf, type PlacementSources } from '../cluster/placement-of-pod.ts';
import type { RecordSealer } from '../cluster/record-seal.ts';
import type { AdmissionCounters, AdmissionKind } from './metrics.ts';
import { Responses } from './responses.ts';
import { podOf } from './validate-pod.ts';
import {
  admittedPodOf,
  hasController,
  isProvisionalTemplate,
  isBeingDeleted,
  kindOf,
  metadataOf,
  templateUnchanged,
} from './workloads.ts';

export interface MutatorOptions {
  readonly sources: PlacementSources;
  readonly counters: AdmissionCounters;
  /** Absent: records are written, and accepted, without a seal. */
  readonly recordSealer?: (() => RecordSealer) | undefined;
  readonly log: Log;
}

const noFacts = (): undefined => undefined;

export class Mutator {
  readonly #options: MutatorOptions;
  readonly #responses: Responses;

  constructor(options: MutatorOptions) {
    this.#options = options;
    this.#responses = new Responses(options.counters, options.log);
  }

  /** Answers a request. Never rejects. `budgetMs` limits the wait for images that the cache does not have. */
  async mutate(request: AdmissionRequest, budgetMs: number): Promise<AdmissionResponse> {
    try {
      return await this.#route(request, budgetMs);
    } catch (error) {
      return this.#responses.fault(request, error);
    }
  }

  async #route(request: AdmissionRequest, budgetMs: number): Promise<AdmissionResponse> {
    const { operation, subResource, object } = request;
    const kind = kindOf(request);
    const creates = operation === 'CREATE';
    const ignore = (): AdmissionResponse => this.#responses.ignored(request, kind);
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
    const { sources, recordSealer } = this.#options;
    const admitted = admittedPodOf(request, kind);
    const { pod, pullSecrets, template, before } = admitted;
    const namespace = request.namespace ?? pod.metadata?.namespace ?? '';
    const sealedKind = kind === 'Pod' ? 'Pod' : 'DaemonSet';
    const seal = recordSealer?.().sealOf(sealedKind, namespace, metadataOf(request.object));
    const target = {
      pod,
      namespace,
      pullSecrets,
      isForPerson: !hasController(request.object),
      ...(template !== undefined && { template }),
      ...(before !== undefined && { before }),
      ...(seal && { seal }),
    };
    const placement = await placementOf(target, sources, { budgetMs, cacheOnly: isDryRun(request) });
    return this.#responses.decided(request, admitted, placement);
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
      return this.#responses.ignored(request, 'Pod');
    const found = await sources.factsOfPod({ ...ofPod, cacheOnly: isDryRun(request) });
    const warnings = runningPodWarnings({
      pod,
      oldPod,
      nodeArchitecture,
      nodes: input.nodes,
      facts: (image) => found.get(image),
    });
    return this.#responses.ignored(request, 'Pod', warnings);
  }
}

/** A dry run precedes quotas and validation, and leaves no trace. It must not cause requests. */
function isDryRun({ dryRun }: AdmissionRequest): boolean {
  return dryRun === true;
}
