import { counter, gauge, type MetricSpec } from '../../../telemetry/metrics.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { issueReasons, leafNames } from './leaves.ts';
import type { Found } from './rotation-plan.ts';

const certificateNames = ['ca', ...leafNames] as const;

const certificateExpiresIn = gauge(
  'archwright_certificate_expires_in_seconds',
  'Time until a built-in certificate expires; NaN if another replica leads.',
  { certificate: certificateNames },
);

export const certificatesIssued = counter(
  'archwright_certificates_issued_total',
  'Built-in certificates issued: regularly (due), for a new CA (authority), or as a repair.',
  { certificate: certificateNames, reason: issueReasons },
);

export const certificateMetrics: readonly MetricSpec[] = [certificateExpiresIn, certificatesIssued];

/** When each certificate expires. A missing or unknown one is NaN: 0 would mean expired. */
export function showExpiry({ metrics, serverNow }: Pick<LeaderContext, 'metrics' | 'serverNow'>) {
  let found: Found | undefined;
  const gauges = certificateNames.map(
    (certificate) => [certificate, metrics.gauge(certificateExpiresIn, { certificate })] as const,
  );
  const set = (): void => {
    for (const [name, gauge] of gauges) {
      const holder =
        name === 'ca' ? found?.authorities.newest : found?.leaves.find((leaf) => leaf.name === name);
      const end = holder?.certificate?.to;
      gauge.set(end === undefined ? Number.NaN : Math.round((end - serverNow()) / 1000));
    }
  };
  set();
  const stop = metrics.beforeScrape(set);
  return {
    show: (now: Found): void => {
      found = now;
    },
    end: (): void => {
      stop();
      found = undefined;
      set();
    },
  };
}
