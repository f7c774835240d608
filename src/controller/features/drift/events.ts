/** Events about tags that lost an architecture: one per workload, image and `driftInterval`. */
import { inTurn } from '../../../async/fair-queue.ts';
import { describeDrift, type DriftedTag } from '../../../images/sources/drifted-tags.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import { podReference } from '../../pods/workload.ts';
import type { Reporter } from '../../report/reporter.ts';
import type { RunningTag } from './tags.ts';

/** Owners read for one tag, in turn from each namespace. Metric and report always name the tag. */
const maxOwners = 100;

/** @param pulled digests that pods run */
export async function reportLost(
  leader: LeaderContext,
  reporter: Reporter,
  tag: RunningTag,
  drifted: DriftedTag,
  pulled: readonly string[],
): Promise<void> {
  const message = messageOf(drifted, pulled);
  const reported = new Set<string | undefined>();
  for (const pod of somePods(tag)) {
    const { namespace, owner } = pod;
    // Static pods belong to their node.
    const isAlone = owner === undefined || owner.kind === 'Node';
    const about = isAlone ? podReference(pod) : await reporter.workloadOf(namespace, owner);
    if (reported.has(about.uid)) continue;
    reported.add(about.uid);
    leader.events.record(about, { type: 'Warning', reason: 'ImageLostArchitecture', message });
  }
  const { image, digest, lost } = drifted;
  leader.log.warn({ image, digest, lost, workloads: reported.size }, 'a tag of running pods lost platforms');
}

/** One pod of each owner. */
function somePods({ uses }: RunningTag): readonly RunningPod[] {
  const byOwner = new Map(uses.map(({ pod }) => [pod.owner?.uid ?? pod.uid, pod]));
  return inTurn(byOwner.values(), ({ namespace }) => [namespace]).slice(0, maxOwners);
}

function messageOf(drifted: DriftedTag, pulled: readonly string[]): string {
  const { image, digest } = drifted;
  const was = pulled[0] === undefined ? '' : `; pods run ${pulled[0]}`;
  return (
    `Image ${printable(image, maxImageBytes)} ${printable(describeDrift(drifted), 300)}: its tag was pushed again and names ` +
    `${digest} now${was}. Running pods keep running; new ones avoid the nodes whose platform the image lost. Push the tag with all ` +
    'platforms, or pin the digest that still runs.'
  );
}
