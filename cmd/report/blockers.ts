/** Everything that keeps a pod from an architecture. The verdict names only the most important blocker. */
import { printable } from '../../src/names/printable.ts';
import type { MadePod, ReportedPod } from './pods.ts';
import type { ReportedWorkload } from './workloads.ts';
import {
  chosenBy,
  decidingTemplate,
  withoutAffinity,
  type Judged,
  type JudgedImage,
  type Verdict,
} from './verdict.ts';

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

const verdictOf: Readonly<Record<Cause, Verdict>> = {
  image: 'no',
  broken: 'no',
  unknown: 'unknown',
  selector: 'pinned',
  affinity: 'pinned',
};

/** The most important blocker is the verdict. @param isBroken the image ended with an exec format error */
export function judgePod(
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
): { readonly judged: Judged; readonly blockers: readonly Blocker[] } {
  const byImage = images.flatMap((each) => {
    const cause = causeOfImage(each, isBroken);
    return cause === undefined ? [] : [{ cause, image: each.image }];
  });
  const pin = pinOf(decidingTemplate(pod, workload), architecture);
  const all: readonly Blocker[] = [...byImage, ...(pin === undefined ? [] : [{ cause: pin.cause }])];
  const blockers = all.toSorted((a, b) => causes.indexOf(a.cause) - causes.indexOf(b.cause));
  const main = mainCause({ blockers });
  const verdict = main === undefined ? 'yes' : verdictOf[main];
  const why = images.filter((each) => each.verdict === verdict && each.why !== '').map((each) => each.why);
  return { judged: { verdict, why: verdict === 'pinned' ? (pin?.why ?? '') : joined(why) }, blockers };
}

const maxNamed = 3;

function joined(whys: readonly string[]): string {
  const more = whys.length - maxNamed;
  return [...whys.slice(0, maxNamed), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
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

function pinOf(template: MadePod['pod'], architecture: string) {
  const chosen = chosenBy(template);
  if (chosen === undefined || chosen.includes(architecture)) return undefined;
  const withoutIt = chosenBy(withoutAffinity(template));
  const cause: Cause = (withoutIt?.includes(architecture) ?? true) ? 'affinity' : 'selector';
  const which = printable(chosen.join(', '), 200) || 'an architecture that does not exist';
  return { cause, why: `it requires ${which}` };
}
