/** Whether a pod could run on an architecture, even if no node of the cluster has it yet. */
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { errorText } from '../../src/placement/rules/images/unknown.ts';
import { describeDrift, type DriftedTag } from '../../src/images/sources/drifted-tags.ts';
import type { ImageVerdict } from '../../src/placement/decision.ts';
import { describeImages } from '../../src/placement/rules/constraint/no-common.ts';
import { noNodes } from '../../src/nodes/node-classes.ts';
import { verdictsOf } from '../../src/placement/rules/images/fit.ts';
import { listed, maxImageBytes, printable } from '../../src/names/printable.ts';
import { choiceOf, exclusionOf } from './exclusion.ts';
import type { MadePod, ReportedPod, ReportedWorkload } from './pods.ts';

/** `yes`: all images have it; `pinned`: but the pod excludes it; `no`: one lacks it; else `unknown`. */
export const verdicts = ['yes', 'pinned', 'no', 'unknown'] as const;
export type ReportVerdict = (typeof verdicts)[number];

export interface Judgement {
  readonly verdict: ReportVerdict;
  /** One line for people; for `yes` only what is new, and the level of x86-64 that an image needs. */
  readonly why: string;
}

/** The most important cause comes first and is the verdict. */
export const causes = ['image', 'broken', 'unknown', 'selector', 'affinity'] as const;
export type Cause = (typeof causes)[number];

export const states = ['ready', ...causes] as const;
export type State = (typeof states)[number];

export const stateVerdicts: Readonly<Record<State, ReportVerdict>> = {
  ready: 'yes',
  image: 'no',
  broken: 'no',
  unknown: 'unknown',
  selector: 'pinned',
  affinity: 'pinned',
};

export interface Blocker {
  readonly cause: Cause;
  /** The image, for the causes `image`, `broken` and `unknown`. */
  readonly image?: string;
}

export interface JudgedImage extends Judgement {
  readonly image: string;
  /** `broken`: it ended with an exec format error. */
  readonly state: State;
  /** Sorted; absent if it constrains nothing or is unknown. */
  readonly architectures?: readonly string[];
}

export interface JudgedPod extends Judgement {
  readonly pod: ReportedPod;
  readonly workload: ReportedWorkload;
  readonly images: readonly JudgedImage[];
  /** The most important first; empty if it could run on the architecture. */
  readonly blockers: readonly Blocker[];
  /** Architecture of its node, if the pod has a node and it is known. */
  readonly on: string | undefined;
}

/** Keys: images as a pod writes them. */
export type DriftOf = (image: string) => DriftedTag | undefined;

/** `why` does not name the image. */
export function judgeImages(
  { os, wanted: { uses } }: { readonly os: string; readonly wanted: Pick<MadePod['wanted'], 'uses'> },
  architecture: string,
  factsOf: (image: string) => ImageFacts | undefined,
  driftOf: DriftOf = () => undefined,
): readonly JudgedImage[] {
  // Every class of node is possible in a cluster without nodes, and an image runs on what it names.
  return verdictsOf(uses, os, factsOf, noNodes).map((found, index) => {
    const { image, architectures } = found;
    const isNever = uses[index]?.pullPolicy === 'Never';
    const { state, why } = isNever ? neverPulled : stateOf(found, os, architecture, driftOf(image));
    const isKnown = state !== 'unknown' && architectures !== undefined;
    return { image, state, verdict: stateVerdicts[state], ...(isKnown && { architectures }), why };
  });
}

const neverPulled = {
  state: 'unknown',
  why: 'it is never pulled, so its architectures are unknown',
} as const;

function stateOf(
  found: ImageVerdict,
  os: string,
  architecture: string,
  drift: DriftedTag | undefined,
): Pick<JudgedImage, 'state' | 'why'> {
  const { image, architectures, unknown, fit, facts } = found;
  const { error, stale, requiredLevel, brokenOn } = facts ?? {};
  if (unknown !== undefined || error?.code === 'invalid-reference') {
    const why = error ? `${error.code}: ${printable(errorText(error), 512)}` : 'no answer in time';
    return { state: 'unknown', why };
  }
  const notes = stale ? ['from the cache, because the registry does not answer'] : [];
  if (architectures !== undefined && !architectures.includes(architecture)) {
    const has = describeImages([found], os).slice(printable(image, maxImageBytes).length + 1);
    if (!brokenOn?.includes(architecture)) return { state: 'image', why: [has, ...notes].join('; ') };
    return { state: 'broken', why: `${has}; its binaries for ${architecture} are not (exec format error)` };
  }
  const depends = fit?.dependsOn.get(architecture);
  if (depends !== undefined) notes.unshift(`not on every ${architecture} node: it depends on ${depends}`);
  if (architecture === 'amd64' && requiredLevel !== undefined)
    notes.unshift(`needs x86-64-v${requiredLevel}`);
  // Pods that run have a gained architecture after their next rollout.
  const gained = (drift?.gained ?? []).filter((each) => each.split('/')[1] === architecture);
  if (gained.length > 0) notes.push(describeDrift({ lost: [], gained }));
  return { state: 'ready', why: notes.join('; ') };
}

/** The limit for all images of a pod. The longest text about one image has 2,072. */
const maxWhyBytes = 2200;

/** The verdict on a pod, and all that blocks it: the most important blocker is the verdict. */
export function judgePod(
  pod: Pick<ReportedPod, 'made' | 'owner'>,
  workload: Pick<ReportedWorkload, 'template'>,
  images: readonly JudgedImage[],
  architecture: string,
): Judgement & { readonly blockers: readonly Blocker[] } {
  const byImage = images.flatMap(({ state, image }) => (state === 'ready' ? [] : [{ cause: state, image }]));
  const exclusion = exclusionOf(choiceOf(decidingTemplate(pod, workload)), architecture);
  const all: readonly Blocker[] = [...byImage, ...(exclusion ? [{ cause: exclusion.cause }] : [])];
  const blockers = all.toSorted((a, b) => causes.indexOf(a.cause) - causes.indexOf(b.cause));
  const verdict = stateVerdicts[mainState({ blockers })];
  const those = images.filter((each) => each.verdict === verdict && each.why !== '');
  const why = listed(those, textOf, maxWhyBytes);
  return { verdict, why: verdict === 'pinned' ? (exclusion?.why ?? '') : why, blockers };
}

function textOf({ image, state, why }: JudgedImage): string {
  const isSentence = state === 'image' || state === 'broken';
  return `${printable(image, maxImageBytes)}${isSentence ? '' : ':'} ${why}`;
}

/** The cause of a pod that cannot run. */
export function mainState({ blockers }: { readonly blockers: readonly Blocker[] }): State {
  return blockers[0]?.cause ?? 'ready';
}

/** What chooses a pod's nodes: for a DaemonSet its template, as the pod's affinity only names its node. */
function decidingTemplate(
  { made: { pod }, owner }: Pick<ReportedPod, 'made' | 'owner'>,
  { template }: Pick<ReportedWorkload, 'template'>,
): MadePod['pod'] {
  if (owner?.kind !== 'DaemonSet') return pod;
  const { affinity: _, ...spec } = pod.spec;
  return template ?? { metadata: pod.metadata, spec };
}
