/** An explanation for programs: `--output json` and `yaml`. */
import type { ImageVerdict, PlacementDecision } from '../../src/placement/decision.ts';
import { describeRule } from '../../src/placement/rules/rules.ts';
import { isAdmitted, type Explanation } from './explainer.ts';

/**
 * An explanation as plain data, as documented in `docs/use/explain.md`.
 * @param withPatch adds the JSON patch and the patched object
 */
export function resultOf(explanation: Explanation, withPatch: boolean): Readonly<Record<string, unknown>> {
  const { subject, outcome } = explanation;
  const { kind, namespace, name, place } = subject;
  const head = { kind, namespace, name, place, admitted: isAdmitted(explanation) };
  if ('error' in outcome) return { ...head, error: outcome.error };
  const { decision, patch, patched, warnings } = outcome;
  return {
    ...head,
    ...decisionResult(decision),
    images: decision.images.map(imageResult),
    rules: decision.reasons.map(({ rule, message }) => ({ rule, message, meaning: describeRule(rule) })),
    warnings,
    ...(withPatch && { patch, patched }),
  };
}

function decisionResult(decision: PlacementDecision): Readonly<Record<string, unknown>> {
  const { outcome, message, os, required, preferred, preferenceMode, tolerations, gate } = decision;
  const { nodeLabels, nodeLabelsByArchitecture, excludedNodes } = decision;
  return {
    outcome,
    ...(message !== undefined && { message }),
    os,
    ...(required !== undefined && { required }),
    ...(preferred.length > 0 && { preferred, preferenceMode }),
    ...(Object.keys(nodeLabels).length > 0 && { nodeLabels }),
    ...(Object.keys(nodeLabelsByArchitecture).length > 0 && { nodeLabelsByArchitecture }),
    ...(excludedNodes.length > 0 && { excludedNodes }),
    tolerations,
    gate,
  };
}

/** Image facts as in the agent API and `inspect`, without the repeated image name. */
function imageResult({ image, usedBy, architectures, unknown, facts }: ImageVerdict): object {
  const { image: _, ...learned } = facts ?? { image };
  return {
    image,
    usedBy,
    ...(facts && architectures !== undefined && { architectures }),
    ...(unknown !== undefined && { unknown }),
    ...learned,
  };
}
