/** Everything that keeps a pod from an architecture. The verdict names only the most important blocker. */
import type { MadePod, ReportedPod } from './pods.ts';
import type { ReportedWorkload } from './workloads.ts';
import { chosenBy, decidingTemplate, withoutAffinity, type JudgedImage } from './verdict.ts';

/** In order of importance, as the verdict takes them. */
export const causes = ['image', 'broken', 'unknown', 'selector', 'affinity'] as const;
export type Cause = (typeof causes)[number];

/** A cause, or `ready` for pods without blockers. */
export type State = 'ready' | Cause;

export interface Blocker {
  readonly cause: Cause;
  /** The image, for the causes `image`, `broken` and `unknown`. */
  readonly image?: string;
}

/** @param isBroken whether the image ended with an exec format error on the architecture */
export function blockersOf(
  {
    pod,
    workload,
    images,
  }: {
    readonly pod: Pick<ReportedPod, 'made' | 'owner'>;
    readonly workload: Pick<ReportedWorkload, 'template'>;
    readonly images: readonly JudgedImage[];
  },
  architecture: string,
  isBroken: (image: string) => boolean,
): readonly Blocker[] {
  const byImage = images.flatMap((each) => {
    const cause = causeOfImage(each, isBroken);
    return cause === undefined ? [] : [{ cause, image: each.image }];
  });
  const pin = pinOf(decidingTemplate(pod, workload), architecture);
  const all: readonly Blocker[] = [...byImage, ...(pin === undefined ? [] : [{ cause: pin }])];
  return all.toSorted((a, b) => causes.indexOf(a.cause) - causes.indexOf(b.cause));
}

/** The cause of a pod that cannot run; `undefined` for one that can. */
export function mainCause({ blockers }: { readonly blockers: readonly Blocker[] }): Cause | undefined {
  return blockers[0]?.cause;
}

function causeOfImage(
  { image, verdict }: JudgedImage,
  isBroken: (image: string) => boolean,
): Cause | undefined {
  if (verdict === 'no') return isBroken(image) ? 'broken' : 'image';
  return verdict === 'unknown' ? 'unknown' : undefined;
}

function pinOf(template: MadePod['pod'], architecture: string): Cause | undefined {
  if (allows(template, architecture)) return undefined;
  return allows(withoutAffinity(template), architecture) ? 'affinity' : 'selector';
}

function allows(template: MadePod['pod'], architecture: string): boolean {
  return chosenBy(template)?.includes(architecture) ?? true;
}
