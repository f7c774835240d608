import { registryErrorCodes } from '../../../registry/manifest-lookup.ts';
import { counter, gauge, itemCounts, type Metrics, type MetricSpec } from '../../../telemetry/metrics.ts';
import type { DriftedTag } from '../../../images/sources/drifted-tags.ts';
import { countedArchitectures } from '../../../names/architecture.ts';

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

export class DriftMeters {
  readonly #metrics: Metrics;
  readonly #showDrifted: ReturnType<typeof itemCounts>;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    this.#showDrifted = itemCounts(metrics, driftedTags);
  }

  checked(result: string): void {
    this.#metrics.counter(checks, { result }).inc();
  }

  /** A tag counts once for each architecture that it lost or gained. */
  show(drifted: readonly DriftedTag[], tags: { readonly checked: number; readonly leftOut: number }): void {
    this.#showDrifted(drifted, (tag) =>
      changes.flatMap((change) =>
        tag[change].map((platform) => ({ change, architecture: platform.split('/')[1] ?? '' })),
      ),
    );
    this.#metrics.gauge(checkedTags, { checked: 'yes' }).set(tags.checked);
    this.#metrics.gauge(checkedTags, { checked: 'no' }).set(tags.leftOut);
  }
}
