/**
 * Why a container failed:
 *
 * - An exec format error: its image has binaries for another architecture than its manifest names, or its node
 *   is one that the image does not support. Only the former is noted.
 * - A CPU level that the node lacks, as the program's last output says. The image is not at fault: the note
 *   says which CPU it needs.
 */
import { amd64Levels } from '../../../nodes/amd64-level.ts';
import { withReport } from '../../../nodes/classify.ts';
import type { Amd64Level } from '../../../nodes/node-class.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import { uncheckedRecord } from '../../../placement/record/read.ts';
import { verdictsOf } from '../../../placement/rules/images/fit.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { factsOf, useOf } from '../../pods/pulled-images.ts';
import type { MissedLevel, Suspect } from '../../pods/suspects.ts';

type Blame =
  | { readonly kind: 'image' }
  | { readonly kind: 'node'; readonly architectures: readonly string[] }
  /** The manifest is not known. */
  | { readonly kind: 'unknown' };

/** @param architecture of the pod's node */
export async function blameOf(
  leader: LeaderContext,
  pod: RunningPod,
  { pulled, image, digest }: Suspect,
  architecture: string,
): Promise<Blame> {
  const found = await factsOf(leader, pod, [useOf(pulled), useOf(image)]);
  const byTag = found.get(image);
  const known = [found.get(pulled), byTag?.digest === digest ? byTag : undefined];
  const facts = known.find((each) => each !== undefined && each.error === undefined);
  const [verdict] = verdictsOf([useOf(image)], pod.os, () => facts);
  if (facts === undefined || verdict?.architectures === undefined) return { kind: 'unknown' };
  const { architectures } = verdict;
  const isClaimed = architectures.includes(architecture) || facts.brokenOn?.includes(architecture);
  return isClaimed ? { kind: 'image' } : { kind: 'node', architectures };
}

/** One message for pod and workload. @param architecture of the pod's node */
export function describeBlame(pod: RunningPod, suspect: Suspect, architecture: string, blame: Blame): string {
  const image = printable(suspect.image, maxImageBytes);
  const start = `Container ${suspect.container}: `;
  const node = `node ${pod.node}`;
  if (blame.kind === 'node') {
    const has = printable(blame.architectures.join(', '), 100) || `no platform for ${pod.os}`;
    return `${start}${image} has ${has}, so it cannot run on ${node} (${architecture}). ${remedyOf(pod, architecture)}`;
  }
  const what = `a binary of ${image} is not for ${architecture}, the architecture of ${node}`;
  if (blame.kind === 'unknown')
    return `${start}${what}. Its manifest is not known now, so nothing is recorded; archwright explain shows why.`;
  return (
    `${start}${what}, although its manifest names it. New pods of this namespace avoid ${architecture} if the ` +
    'image has another architecture.'
  );
}

function remedyOf({ nodeChoice, annotations }: RunningPod, architecture: string): string {
  const { outcome } = uncheckedRecord({ metadata: { annotations } });
  const isOwnChoice = nodeChoice !== undefined && (outcome === undefined || outcome === 'own-constraint');
  return isOwnChoice
    ? `The pod chose that node by its node selector or affinity: change these, or use an image for ${architecture}.`
    : 'Create the pod again without a node name, so that archwright places it by what its image has.';
}

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

/** One message for pod and workload. */
export function describeLevel(
  { node }: Pick<RunningPod, 'node'>,
  suspect: Pick<Suspect, 'container' | 'image'>,
  level: Amd64Level,
  ofNode: Amd64Level | undefined,
): string {
  const image = printable(suspect.image, maxImageBytes);
  const has = ofNode !== undefined && ofNode < level ? `has x86-64-v${ofNode}` : 'lacks it';
  const need = `${image} needs a CPU with x86-64-v${level}, and node ${node} ${has}`;
  return `Container ${suspect.container}: ${need}. New pods of this namespace get such a node.`;
}
