import { counter, gauge, type MetricSpec } from '../telemetry/metrics.ts';

/** `server`: shown to clients; `client`: shown to servers. */
const certificateUses = ['server', 'client'] as const;
export type CertificateUse = (typeof certificateUses)[number];

export const servingMetrics = {
  handshakeFailures: counter(
    'archwright_tls_handshake_failures_total',
    'Connections that ended during the TLS handshake: the client does not trust this server, or lacks a certificate.',
  ),
  droppedConnections: counter(
    'archwright_dropped_connections_total',
    'Connections closed at the limit of the server or of the address.',
  ),
  certificateExpiry: gauge(
    'archwright_tls_certificate_expiry_timestamp_seconds',
    'Earliest expiry of the certificates in use.',
    { use: certificateUses },
  ),
} satisfies Record<string, MetricSpec>;
