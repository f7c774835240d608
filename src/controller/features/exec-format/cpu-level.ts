/**
 * Containers that ended because the node's CPU lacks an x86-64 level. The program's last output says so. This
 * is never a fault of the image: the note says which CPU it needs.
 */
import { amd64Levels } from '../../../nodes/amd64-level.ts';
import { withReport } from '../../../nodes/classify.ts';
import type { Amd64Level } from '../../../nodes/node-class.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import type { MissedLevel } from '../../pods/suspects.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';

/** The level of a node's CPU, if its labels or its agent state it. */
export function levelOfNode(
  { fleet }: LeaderContext,
  { name, classified }: CachedNode,
): Amd64Level | undefined {
  if (classified === undefined) return undefined;
  return withReport(classified.class, fleet?.nodeReports().get(name)).amd64Level ?? classified.levels.own;
}

/** @returns `undefined`: no level is above that of the node */
export function neededLevel(missed: MissedLevel, ofNode: Amd64Level | undefined): Amd64Level | undefined {
  if (missed !== 'higher') return missed;
  return amd64Levels.find((level) => level > (ofNode ?? 1));
}

export interface ReportedLevel {
  readonly pod: RunningPod;
  readonly suspect: { readonly container: string; readonly image: string };
  readonly level: Amd64Level;
  readonly ofNode: Amd64Level | undefined;
}

/** One message for pod and workload. */
export function describeLevel({ pod, suspect, level, ofNode }: ReportedLevel): string {
  const image = printable(suspect.image, maxImageBytes);
  const has = ofNode !== undefined && ofNode < level ? `has x86-64-v${ofNode}` : 'lacks it';
  const need = `${image} needs a CPU with x86-64-v${level}, and node ${pod.node} ${has}`;
  return `Container ${suspect.container}: ${need}. New pods of this namespace get such a node.`;
}
