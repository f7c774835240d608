/** Metrics of servers and of the certificates they and their clients use. */
import type { MetricSpec } from '../telemetry/metrics.ts';

/** `server`: shown to whoever connects; `client`: shown to the servers that are asked. */
export const certificateUses = ['server', 'client'] as const;
export type CertificateUse = (typeof certificateUses)[number];

export const handshakeFailures: MetricSpec = {
  name: 'archwright_tls_handshake_failures_total',
  type: 'counter',
  help: 'Connections that ended before their TLS handshake was through; the other side may not trust this certificate, or lack one.',
};

export const droppedConnections: MetricSpec = {
  name: 'archwright_dropped_connections_total',
  type: 'counter',
  help: 'Connections that were closed at once because the server had as many as it may have.',
};

export const certificateExpiry: MetricSpec = {
  name: 'archwright_tls_certificate_expiry_timestamp_seconds',
  type: 'gauge',
  help: 'When the certificate in use expires, in seconds since 1970.',
  labels: { use: certificateUses },
};

export const certificateReloads: MetricSpec = {
  name: 'archwright_tls_reloads_total',
  type: 'counter',
  help: 'TLS files that were found changed and read again; a failure keeps the certificate that was in use.',
  labels: { use: certificateUses, outcome: ['loaded', 'failed'] },
};

export const servingMetrics: readonly MetricSpec[] = [
  handshakeFailures,
  droppedConnections,
  certificateExpiry,
  certificateReloads,
];
