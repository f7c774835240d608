/** What one side did for one image: the runs of plugins, who was presented to the registry, and what came of it. */
import {
  InvalidReference,
  parseReference,
  type Reference,
} from '../../../src/images/references/reference.ts';
import type { Run } from './recorder.ts';
import type { Seen, Side } from './registries.ts';

export interface Observation {
  readonly image: string;
  /** In the order in which they began. */
  readonly runs: readonly Run[];
  /** Users as presented to the registry or its token server, without immediate repetition; empty: anonymous. */
  readonly presented: readonly string[];
  /** Whether the registry was asked at all. */
  readonly asked: boolean;
  /** `pulled`, or why not: one class for each attempt. */
  readonly outcome: readonly string[];
  /** What was said, for people. */
  readonly message: string;
}

/** A part of the time line that belongs to one image. */
export interface Stretch {
  readonly side: Side;
  readonly reference: Reference | undefined;
  /** Milliseconds since the epoch; what is at `from` is not in it, what is at `to` is. */
  readonly from: number;
  readonly to: number;
}

/** All that happened in a stretch of time for its image. */
export function observed(
  stretch: Stretch,
  all: { readonly runs: readonly Run[]; readonly seen: readonly Seen[] },
): Pick<Observation, 'runs' | 'presented' | 'asked'> {
  const within = ({ side, at }: { readonly side: Side; readonly at: number }): boolean =>
    side === stretch.side && at > stretch.from && at <= stretch.to;
  const seen = all.seen.filter((request) => within(request) && isOf(request, stretch.reference));
  const presented = seen.flatMap((request) => (request.presented === undefined ? [] : [request.presented]));
  return {
    runs: all.runs.filter((run) => within(run) && imageOf(run) === stretch.reference?.repository),
    presented: presented.filter((user, index) => user !== presented[index - 1]),
    asked: seen.length > 0,
  };
}

export function isOf({ domain, repository }: Seen, reference: Reference | undefined): boolean {
  return domain === reference?.domain && repository === reference.path;
}

/** `undefined` where it can never be pulled. */
export function referenceOf(image: string): Reference | undefined {
  try {
    return parseReference(image);
  } catch (error) {
    if (error instanceof InvalidReference) return undefined;
    throw error;
  }
}

/** The image in a plugin's request. */
export function imageOf({ stdin }: Run): string {
  try {
    return (JSON.parse(stdin) as { image?: string }).image ?? '';
  } catch {
    return '';
  }
}
