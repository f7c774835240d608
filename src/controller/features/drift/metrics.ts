import { registryErrorCodes } from '../../../registry/manifest-lookup.ts';
import { counter, gauge, type Gauge, type Metrics, type MetricSpec } from '../../../telemetry/metrics.ts';
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
  readonly #drifted: readonly {
    readonly change: string;
    readonly architecture: string;
    readonly gauge: Gauge;
  }[];

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    const series = changes.flatMap((change) =>
      countedArchitectures.map((architecture) => ({ change, architecture })),
    );
    this.#drifted = series.map((each) => ({ ...each, gauge: metrics.gauge(driftedTags, each) }));
  }

  checked(result: string): void {
    this.#metrics.counter(checks, { result }).inc();
  }

  /** A tag counts once for each architecture that it lost or gained. */
  show(drifted: readonly DriftedTag[], tags: { readonly checked: number; readonly leftOut: number }): void {
    const lost = drifted.flatMap(({ lost: platforms }) => architecturesIn(platforms, 'lost'));
    const gained = drifted.flatMap(({ gained: platforms }) => architecturesIn(platforms, 'gained'));
    const counts = Map.groupBy([...lost, ...gained], (key) => key);
    for (const { change, architecture, gauge: shown } of this.#drifted)
      shown.set(counts.get(`${change} ${architecture}`)?.length ?? 0);
    this.#metrics.gauge(checkedTags, { checked: 'yes' }).set(tags.checked);
    this.#metrics.gauge(checkedTags, { checked: 'no' }).set(tags.leftOut);
  }
}

function architecturesIn(platforms: readonly string[], change: (typeof changes)[number]): readonly string[] {
  const listed: readonly string[] = countedArchitectures;
  const found = platforms.map((platform) => platform.split('/')[1] ?? '');
  return [...new Set(found.map((name) => `${change} ${listed.includes(name) ? name : 'other'}`))];
}
