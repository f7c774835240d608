/** Metrics of the certificates. */
import type { Gauge, MetricSpec } from '../../telemetry/metrics.ts';
import type { Leading } from '../leadership/leading.ts';
import { issueReasons, leafNames, type IssueReason, type LeafName } from './leaves.ts';
import type { Found } from './rotation-plan.ts';

const certificateNames = ['ca', ...leafNames] as const;

const certificateExpiresIn: MetricSpec = {
  name: 'archwright_certificate_expires_in_seconds',
  type: 'gauge',
  help: 'Time until a built-in certificate expires, as the leader sees it; NaN if there is none, or another replica leads.',
  labels: { certificate: certificateNames },
};

const certificatesIssued: MetricSpec = {
  name: 'archwright_certificates_issued_total',
  type: 'counter',
  help: 'Built-in certificates that were issued: because two thirds of their life were over (due), for a new CA (authority), or to repair what was found.',
  labels: { certificate: certificateNames, reason: issueReasons },
};

export const certificateMetrics: readonly MetricSpec[] = [certificateExpiresIn, certificatesIssued];

/** When each certificate expires. A missing or unknown one is NaN, because 0 would mean that it is expired. */
export class ExpiryGauges {
  readonly #gauges: readonly (readonly [LeafName | 'ca', Gauge])[];
  readonly #serverNow: () => number;
  readonly #stop: () => void;
  #found: Found | undefined;

  constructor({ metrics, serverNow }: Pick<Leading, 'metrics' | 'serverNow'>) {
    this.#gauges = certificateNames.map((name) => [
      name,
      metrics.gauge(certificateExpiresIn, { certificate: name }),
    ]);
    this.#serverNow = serverNow;
    this.#set();
    this.#stop = metrics.beforeScrape(() => this.#set());
  }

  show(found: Found): void {
    this.#found = found;
  }

  end(): void {
    this.#stop();
    this.#found = undefined;
    this.#set();
  }

  #set(): void {
    for (const [name, gauge] of this.#gauges) {
      const { authorities, leaves } = this.#found ?? {};
      const certificate = name === 'ca' ? authorities?.newest?.certificate : leaves?.get(name)?.certificate;
      gauge.set(certificate ? Math.round((certificate.to - this.#serverNow()) / 1000) : Number.NaN);
    }
  }
}

/** Counts issued certificates. */
export function countIssues({ metrics }: Pick<Leading, 'metrics'>) {
  return (certificate: LeafName | 'ca', reason: IssueReason): void =>
    metrics.counter(certificatesIssued, { certificate, reason }).inc();
}
