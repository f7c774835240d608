/** How the TLS of one destination differs from the defaults. */
import type { Secret } from '../../telemetry/secret.ts';

export interface TlsSettings {
  /** PEM texts trusted besides the system's roots. */
  readonly ca: readonly string[];
  /** Client certificates, PEM; the key may be in the same text. */
  readonly client: readonly { readonly certificate: string; readonly key: Secret }[];
  readonly skipVerify: boolean;
}
