/**
 * The cause of an exec format error: an image with binaries for another architecture than its manifest names,
 * or a pod on a node that its image does not support. Only the former is noted.
 */
import { maxImageBytes, printable } from '../../../names/printable.ts';
import { uncheckedRecord } from '../../../placement/record/read.ts';
import { verdictsOf } from '../../../placement/rules/images/verdicts.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import { factsOf, useOf } from '../../pods/pulled-images.ts';
import type { Suspect } from '../../pods/suspects.ts';

export type Blame =
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

export interface BlameReport {
  readonly pod: RunningPod;
  readonly suspect: Suspect;
  /** Architecture of the pod's node. */
  readonly architecture: string;
  readonly blame: Blame;
}

/** One message for pod and workload. */
export function describeBlame({ pod, suspect, architecture, blame }: BlameReport): string {
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
