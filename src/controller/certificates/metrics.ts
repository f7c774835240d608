/** Metrics of the certificates. */
import type { MetricSpec } from '../../telemetry/metrics.ts';
import { issueReasons, leafNames } from './leaves.ts';

export const certificateNames = ['ca', ...leafNames] as const;

export const certificateExpiresIn: MetricSpec = {
  name: 'archwright_certificate_expires_in_seconds',
  type: 'gauge',
  help: 'Time until a built-in certificate expires, as the leader sees it; NaN where there is none, or another replica leads.',
  labels: { certificate: certificateNames },
};

export const certificatesIssued: MetricSpec = {
  name: 'archwright_certificates_issued_total',
  type: 'counter',
  help: 'Built-in certificates that were issued: because two thirds of their life were over (due), for a new CA (authority), or to put right what was found.',
  labels: { certificate: certificateNames, reason: issueReasons },
};

export const certificateMetrics: readonly MetricSpec[] = [certificateExpiresIn, certificatesIssued];
