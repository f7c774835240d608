/** What one side did for one image: runs of plugins, credentials that the registry got, and the outcome. */
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
  /** Users that the registry or its token server got, without immediate repetition; empty: anonymous. */
  readonly presented: readonly string[];
  /** Whether the registry got a request. */
  readonly asked: boolean;
  /** `pulled`, or why not: one class for each attempt. */
  readonly outcome: readonly string[];
  /** The error text. */
  readonly message: string;
}

/** The time span of one image. */
export interface Stretch {
  readonly side: Side;
  readonly reference: Reference | undefined;
  /** Milliseconds since the epoch; `from` is exclusive, `to` inclusive. */
  readonly from: number;
  readonly to: number;
}

/** Everything that happened in the time span of an image. */
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

/** `undefined`: an invalid reference. */
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
