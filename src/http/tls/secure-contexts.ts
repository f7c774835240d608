/**
 * TLS contexts: the roots, an endpoint's CA and client certificates, parsed once and shared. Parsing some hundred
 * certificates takes milliseconds and megabytes, so connections with equal trust share one context.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { BoundedMap } from '../../async/bounded-map.ts';
import { reveal } from '../../telemetry/secret.ts';
import type { TlsSettings } from './settings.ts';
import { TransportError } from '../transport-error.ts';
import { certificatesIn, type Roots } from './trust.ts';

/** More than the TLS settings in a node's hosts.toml files. */
const maxContexts = 32;

export interface TrustSettings {
  readonly roots: Roots;
  readonly tls: Pick<TlsSettings, 'ca' | 'client'>;
}

export interface SecureContexts {
  /** @throws TransportError if a configured certificate or key cannot be used */
  contextFor(settings: TrustSettings): SecureContext;
}

export function createSecureContexts(): SecureContexts {
  const contexts = new BoundedMap<string, SecureContext>(maxContexts);
  return {
    contextFor: (settings) => {
      const id = trustId(settings);
      const context = contexts.get(id) ?? make(settings);
      contexts.set(id, context);
      return context;
    },
  };
}

/** Equal for equal settings; reveals nothing. */
export function trustId({ roots, tls }: TrustSettings): string {
  const client = tls.client.map(({ certificate, key }) => [certificate, reveal(key)]);
  return createHash('sha256')
    .update(JSON.stringify([roots.id, tls.ca, client]))
    .digest('base64');
}

function make({ roots, tls }: TrustSettings): SecureContext {
  try {
    return createSecureContext({
      ca: [...roots.certificates, ...tls.ca.flatMap(usableCertificates)],
      cert: tls.client.map(({ certificate }) => certificate),
      key: tls.client.map(({ key }) => reveal(key)),
      // As in Go (crypto/x509): a configured authority need not be a root.
      allowPartialTrustChain: true,
    });
  } catch (error) {
    throw new TransportError('tls', '', 'the configured CA or client certificate is not usable PEM', error);
  }
}

/** OpenSSL skips what it cannot read, and connections then fail with an error that does not name the cause. */
function usableCertificates(pem: string): string[] {
  const found = certificatesIn(pem);
  if (found.length === 0) throw new Error('no PEM certificate');
  for (const certificate of found) void new X509Certificate(certificate);
  return found;
}
