/**
 * Containers that ended because the node's CPU lacks an x86-64 level. The program's last output says so. This
 * is never a fault of the image: the note says which CPU it needs.
 */
import { amd64Levels } from '../../nodes/amd64-level.ts';
import { withReport } from '../../nodes/classify.ts';
import type { Amd64Level } from '../../nodes/node-class.ts';
import { maxImageBytes, printable } from '../../names/printable.ts';
import type { CachedNode, RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';

/** `higher`: than that of the node. The program names no level. */
export type MissedLevel = Amd64Level | 'higher';

const named: readonly RegExp[] = [
  // glibc sysdeps/x86/dl-get-cpu-features.c: glibc is built for the level, as in UBI 9 (v2) and UBI 10 (v3).
  /^Fatal glibc error: CPU does not support x86-64-v([2-4])$/,
  // Go src/runtime/asm_amd64.s bad_cpu_msg: the program is built with GOAMD64.
  /^This program can only be run on AMD64 processors with v([2-4]) microarchitecture support\.$/,
];
/** glibc sysdeps/x86/dl-prop.h: linked with `-z x86-64-v3`. A path and the program's prefix precede it. */
const unnamed = /: CPU ISA level is lower than required$/;

/** @param text the end of a log, or a termination message; the last such line counts */
export function missedLevelIn(text: string): MissedLevel | undefined {
  for (const line of text.split('\n').reverse()) {
    const end = line.trimEnd();
    const digit = named.map((form) => form.exec(end)?.[1]).find(Boolean);
    if (digit !== undefined) return amd64Levels.find((level) => String(level) === digit);
    if (unnamed.test(end)) return 'higher';
  }
  return undefined;
}

/** The level of a node's CPU, if its labels or its agent state it. */
export function levelOfNode({ fleet }: Leading, { name, classified }: CachedNode): Amd64Level | undefined {
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
