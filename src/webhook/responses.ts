/** Admission responses, each counted when it is made. */
import type { AdmissionRequest, AdmissionResponse } from '../kube/api/objects.ts';
import { boundedWarnings, printable } from '../names/printable.ts';
import type { Placement } from '../cluster/placement-of-pod.ts';
import type { PlacementDecision } from '../placement/decision.ts';
import type { Rule } from '../placement/rules/rules.ts';
import { patchPod } from '../placement/patch/patch.ts';
import type { Log } from '../telemetry/log.ts';
import type { AdmissionCounters, AdmissionKind } from './metrics.ts';
import { InvalidObject } from './validate-pod.ts';
import { kindOf, metadataOf, type AdmittedPod } from './workloads.ts';

const faultWarning =
  'archwright: this object could not be understood and was let through without a placement';

export class Responses {
  readonly #counters: AdmissionCounters;
  readonly #log: Log;

  constructor(counters: AdmissionCounters, log: Log) {
    this.#counters = counters;
    this.#log = log;
  }

  ignored(
    request: AdmissionRequest,
    kind: AdmissionKind,
    warnings: readonly string[] = [],
  ): AdmissionResponse {
    this.#counters.admitted(kind, 'ignored');
    return { uid: request.uid, allowed: true, ...this.#warnings(warnings) };
  }

  /** The object is let through, whatever went wrong. */
  fault(request: AdmissionRequest, error: unknown): AdmissionResponse {
    const kind = kindOf(request);
    this.#counters.faults.inc();
    this.#counters.admitted(kind, 'fault');
    const { uid, namespace } = request;
    this.#log.error(
      { err: error, uid, kind, namespace, ...namesOf(request) },
      'admission failed, the object was let through',
    );
    const warning = error instanceof InvalidObject ? `${faultWarning}: ${error.message}` : faultWarning;
    return { uid: request.uid, allowed: true, ...this.#warnings([warning]) };
  }

  decided(
    request: AdmissionRequest,
    { kind, pod, basePath }: AdmittedPod,
    { decision, input: { namespace, pullability } }: Placement,
  ): AdmissionResponse {
    const { uid } = request;
    this.#count(kind, decision);
    if (pullability) this.#countNodes(decision);
    if (this.#log.isLevelEnabled('debug')) {
      const { outcome, required, excludedNodes, skip } = decision;
      this.#log.debug(
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
    this.#counters.admitted(kind, decision.outcome);
    if (decision.widened) this.#counters.widened.inc();
    if (decision.skip !== undefined) this.#counters.skipped(decision.skip);
    for (const { unknown, facts } of decision.images) {
      const code = unknown ?? facts?.error?.code;
      if (code !== undefined) this.#counters.unknown(code);
    }
  }

  #countNodes({ excludedNodes, reasons }: PlacementDecision): void {
    const has = (wanted: Rule): boolean => reasons.some(({ rule }) => rule === wanted);
    if (excludedNodes.length > 0 && has('pullable-nodes')) this.#counters.nodesExcluded.inc();
    else if (has('pullable-nodes-left-out')) this.#counters.nodesKept.inc();
  }

  #warnings(texts: readonly string[]): Pick<AdmissionResponse, 'warnings'> {
    if (texts.length === 0) return {};
    this.#counters.warnings.inc(texts.length);
    return { warnings: boundedWarnings(texts) };
  }
}

const maxNameBytes = 253;

/** A pod of a controller has no name yet, but the beginning of one. The object may be anything. */
function namesOf({ object }: AdmissionRequest) {
  const { name, generateName }: { name?: unknown; generateName?: unknown } = metadataOf(object) ?? {};
  return {
    ...(typeof name === 'string' && { name: printable(name, maxNameBytes) }),
    ...(typeof generateName === 'string' && { generateName: printable(generateName, maxNameBytes) }),
  };
}
