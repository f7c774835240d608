/** What people see of the certificates: expiry and issues as metrics. */
import type { Leading } from '../leadership/leading.ts';
import { certificateExpiresIn, certificateNames, certificatesIssued } from './metrics.ts';
import type { Found } from './plan.ts';
import type { ReconcileOptions } from './reconcile.ts';

/** Shows when each certificate expires, until `end`; what is not there, or not known any more, is NaN. */
export function showExpiry({ metrics, serverNow }: Pick<Leading, 'metrics' | 'serverNow'>) {
  const levels = certificateNames.map(
    (name) => [name, metrics.gauge(certificateExpiresIn, { certificate: name })] as const,
  );
  let found: Found | undefined;
  let ended = false;

  function show(): void {
    for (const [name, level] of levels) {
      const certificate =
        name === 'ca' ? found?.authorities.newest?.certificate : found?.leaves.get(name)?.certificate;
      level.set(certificate === undefined ? Number.NaN : Math.round((certificate.to - serverNow()) / 1000));
    }
  }

  show();
  metrics.beforeScrape(() => {
    if (!ended) show();
  });
  return {
    found: (now: Found) => {
      found = now;
    },
    end: () => {
      found = undefined;
      show();
      ended = true;
    },
  };
}

/** Counts certificates that were issued. */
export function countIssues({ metrics }: Pick<Leading, 'metrics'>): ReconcileOptions['issued'] {
  return (certificate, reason) => metrics.counter(certificatesIssued, { certificate, reason }).inc();
}
