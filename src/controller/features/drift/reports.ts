/** Metrics and events about tags that lost or gained an architecture. */
import { inTurn } from '../../../async/fair-queue.ts';
import { describeDrift, type DriftedTag } from '../../../images/sources/drifted-tags.ts';
import { countedArchitectures } from '../../../names/architecture.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import { registryErrorCodes } from '../../../registry/manifest-lookup.ts';
import { counter, gauge, itemCounts, type MetricSpec } from '../../../telemetry/metrics.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { podReference } from '../../pods/workload.ts';
import { Reporter } from '../../report/reporter.ts';
import type { RunningTag } from './tags.ts';

const changes = ['lost', 'gained'] as const;

const driftedTags = gauge(
  'archwright_drifted_tags',
  'Tags of running pods that lost or gained a platform. A lost platform counts only if a node needs it.',
  { change: changes, architecture: countedArchitectures },
);

const checkedTags = gauge('archwright_drift_tags', 'Tags of running pods; `no`: too many to check.', {
  checked: ['yes', 'no'],
});

const checks = counter(
  'archwright_drift_checks_total',
  'Checks of tags. `same`: the tag names the digest that pods run; `changed`: another digest; otherwise no answer.',
  { result: ['same', 'changed', 'skipped', ...registryErrorCodes] },
);

export const driftMetrics: readonly MetricSpec[] = [driftedTags, checkedTags, checks];

/** Owners read for one tag, in turn from each namespace. Metric and report always name the tag. */
const maxOwners = 100;

export function createReports(leader: LeaderContext) {
  const { metrics, events, log } = leader;
  const reporter = new Reporter(leader);
  const showDrifted = itemCounts(metrics, driftedTags);
  return {
    checked: (result: string): void => metrics.counter(checks, { result }).inc(),

    /** A tag counts once for each architecture that it lost or gained. */
    show: (
      drifted: Iterable<DriftedTag>,
      { checked, leftOut }: { checked: number; leftOut: number },
    ): void => {
      showDrifted(drifted, (tag) =>
        changes.flatMap((change) =>
          tag[change].map((platform) => ({ change, architecture: platform.split('/')[1] ?? '' })),
        ),
      );
      metrics.gauge(checkedTags, { checked: 'yes' }).set(checked);
      metrics.gauge(checkedTags, { checked: 'no' }).set(leftOut);
    },

    /** Records one event per workload, image and `driftInterval`. @param pulled digests that pods run */
    lost: async (tag: RunningTag, drifted: DriftedTag, pulled: readonly string[]): Promise<void> => {
      const message = messageOf(drifted, pulled);
      const reported = new Set<string | undefined>();
      for (const pod of somePods(tag)) {
        const { namespace, owner } = pod;
        // Static pods belong to their node.
        const isAlone = owner === undefined || owner.kind === 'Node';
        const about = isAlone ? podReference(pod) : await reporter.workloadOf(namespace, owner);
        if (reported.has(about.uid)) continue;
        reported.add(about.uid);
        events.record(about, { type: 'Warning', reason: 'ImageLostArchitecture', message });
      }
      const { image, digest, lost } = drifted;
      log.warn({ image, digest, lost, workloads: reported.size }, 'a tag of running pods lost platforms');
    },
  };
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
