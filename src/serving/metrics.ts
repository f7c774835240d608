/** Metrics of servers, and of the certificates of servers and clients. */
import type { MetricSpec } from '../telemetry/metrics.ts';

/** `server`: shown to clients; `client`: shown to servers. */
const certificateUses = ['server', 'client'] as const;
export type CertificateUse = (typeof certificateUses)[number];

export const servingMetrics = {
  handshakeFailures: {
    name: 'archwright_tls_handshake_failures_total',
    type: 'counter',
    help: 'Connections that ended during the TLS handshake. The client may not trust this certificate, or may lack one.',
  },
  droppedConnections: {
    name: 'archwright_dropped_connections_total',
    type: 'counter',
    help: 'Connections that were closed at once because the server had reached its limit.',
  },
  certificateExpiry: {
    name: 'archwright_tls_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    help: 'Expiry of the certificate in use, in seconds since 1970.',
    labels: { use: certificateUses },
  },
  certificateReloads: {
    name: 'archwright_tls_reloads_total',
    type: 'counter',
    help: 'Reloads of changed TLS files. After a failure, the previous certificate stays in use.',
    labels: { use: certificateUses, outcome: ['loaded', 'failed'] },
  },
} satisfies Record<string, MetricSpec>;
