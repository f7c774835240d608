/**
 * TLS contexts: the roots, an endpoint's CA and client certificates, parsed once and shared. Parsing some hundred
 * certificates costs milliseconds and the result megabytes, so connections of equal trust use the same one.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { reveal } from '../telemetry/secret.ts';
import type { TlsSettings } from './tls-settings.ts';
import { TransportError } from './transport-error.ts';
import { certificatesIn, type Roots } from './trust.ts';

/** More than the TLS settings of a node's hosts.toml files. */
const maxContexts = 32;

export interface TrustSettings {
  readonly roots: Roots;
  readonly tls: Pick<TlsSettings, 'ca' | 'client'>;
}

export interface SecureContexts {
  /** @throws TransportError where a configured certificate or key cannot be used */
  contextFor(settings: TrustSettings): SecureContext;
}

export function createSecureContexts(): SecureContexts {
  const contexts = new Map<string, SecureContext>();
  return {
    contextFor: (settings) => {
      const id = trustId(settings);
      const context = contexts.get(id) ?? make(settings);
      contexts.delete(id);
      contexts.set(id, context);
      const oldest = contexts.keys().next();
      if (contexts.size > maxContexts && !oldest.done) contexts.delete(oldest.value);
      return context;
    },
  };
}

/** Equal for settings that trust and show the same; reveals nothing. */
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
      // As the node does (Go, crypto/x509): what is configured is trusted, and need not be a root.
      allowPartialTrustChain: true,
    });
  } catch (error) {
    throw new TransportError('tls', '', 'the configured CA or client certificate is not usable PEM', error);
  }
}

/** OpenSSL leaves out what it cannot read, and the connection then fails for a reason that leads nowhere. */
function usableCertificates(pem: string): string[] {
  const found = certificatesIn(pem);
  if (found.length === 0) throw new Error('no PEM certificate');
  for (const certificate of found) void new X509Certificate(certificate);
  return found;
}
