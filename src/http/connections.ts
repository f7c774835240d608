/**
 * Pools of kept-alive connections. Requests share a pool only if trust, client certificate, reach and proxy
 * are equal, so that no request travels on a connection that it could not have opened itself.
 */
import { X509Certificate } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext, type SecureContext } from 'node:tls';
import { BoundedMap } from '../async/bounded-map.ts';
import { hashOf } from '../names/hash.ts';
import { reveal } from '../telemetry/secret.ts';
import { retirePool } from './exchange.ts';
import type { Proxy } from './proxy/proxy.ts';
import { openTunnel, type TunnelOptions } from './proxy/tunnel.ts';
import { bareHost, serverNameOf } from './reach/address.ts';
import { checkedLookup, type Reach, type Resolve } from './reach/reach.ts';
import { pemCertificatesIn, type Roots, type TlsSettings } from './tls/trust.ts';
import { TransportError } from './transport-error.ts';

/** More than the TLS settings in a node's hosts.toml files. */
const maxPools = 64;
const maxContexts = 32;

/** Enough for requests that follow each other, few enough for an agent's memory. */
const maxIdlePerHost = 4;

interface TrustSettings {
  readonly roots: Roots;
  readonly tls: Pick<TlsSettings, 'ca' | 'client'>;
}

interface ConnectionNeeds extends TrustSettings {
  readonly secure: boolean;
  readonly tls: TlsSettings;
  readonly reach: Reach;
  readonly proxy: Proxy | undefined;
  /** Idle connections are closed after this. */
  readonly idleMs: number;
  readonly dialMs: number;
}

/** @param resolve resolves names; default: the system's resolver */
export function createConnections(resolve?: Resolve) {
  const pools = new BoundedMap<string, HttpAgent>(maxPools, retirePool);

  function createPool({ secure, tls, reach, proxy, roots, idleMs, dialMs }: ConnectionNeeds): HttpAgent {
    const lookup = checkedLookup(reach, resolve);
    const keep = { keepAlive: true, maxFreeSockets: maxIdlePerHost, timeout: idleMs };
    const proxyTls = proxy?.url.protocol === 'https:' ? tlsOfProxy(proxy, roots) : undefined;
    if (!secure && proxyTls) return new HttpsAgent({ ...keep, ...proxyTls });
    if (!secure) return new HttpAgent({ ...keep, ...(proxy ? {} : { lookup }) });
    const targetTls = { secureContext: contextFor({ roots, tls }), rejectUnauthorized: !tls.skipVerify };
    if (!proxy) return new HttpsAgent({ ...keep, ...targetTls, lookup });
    return tunnelPool(new HttpsAgent(keep), { proxy, proxyTls, targetTls }, dialMs);
  }

  return {
    /** @throws TransportError if a configured certificate or key cannot be used */
    poolFor: (needs: ConnectionNeeds): HttpAgent => {
      const id = poolId(needs);
      const pool = pools.get(id) ?? createPool(needs);
      pools.set(id, pool);
      return pool;
    },
    /** Closes every connection, idle or not. */
    close: (): void => {
      for (const pool of pools.values()) pool.destroy();
      pools.clear();
    },
  };
}

/** The proxy is no endpoint: it sees none of the endpoint's certificates. */
function tlsOfProxy({ url }: Proxy, roots: Roots) {
  const secureContext = contextFor({ roots, tls: { ca: [], client: [] } });
  // Without it, Node takes the name from the Host header, which is the endpoint's.
  return { secureContext, servername: serverNameOf(bareHost(url)) };
}

function poolId({ secure, tls, reach, proxy, roots, dialMs }: ConnectionNeeds): string {
  const proxyUser = proxy?.authorization ? reveal(proxy.authorization) : '';
  const way = proxy ? ['proxy', proxy.url.href, proxyUser, dialMs] : ['direct', reach.id];
  return hashOf([secure, tls.skipVerify, trustId({ roots, tls }), ...way]);
}

/** Equal for equal settings; reveals nothing. */
function trustId({ roots, tls }: TrustSettings): string {
  return hashOf([roots.id, tls.ca, tls.client.map(({ certificate, key }) => [certificate, reveal(key)])]);
}

/** A tunnel that is being opened ends with the dial limit, or when the caller gives up. */
function tunnelPool(
  pool: HttpsAgent,
  settings: Pick<TunnelOptions, 'proxy' | 'proxyTls' | 'targetTls'>,
  dialMs: number,
): HttpsAgent {
  pool.createConnection = (options, created) => {
    const host = options.host ?? '';
    const abort = (options as { abort?: AbortSignal }).abort;
    const limit = AbortSignal.timeout(dialMs);
    openTunnel({
      ...settings,
      host,
      port: Number(options.port),
      targetTls: { ...settings.targetTls, servername: serverNameOf(host), host },
      signal: abort ? AbortSignal.any([limit, abort]) : limit,
    }).then(
      (socket) => created?.(null, socket),
      (error: unknown) => created?.(error as Error, undefined as never),
    );
    return undefined;
  };
  return pool;
}

/** Parsing a few hundred certificates takes 20 ms and megabytes: equal trust shares one context. */
const contexts = new BoundedMap<string, SecureContext>(maxContexts);

function contextFor(settings: TrustSettings): SecureContext {
  const id = trustId(settings);
  const context = contexts.get(id) ?? createContext(settings);
  contexts.set(id, context);
  return context;
}

function createContext({ roots, tls }: TrustSettings): SecureContext {
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

/** OpenSSL skips what it cannot read; connections then fail without naming the cause. */
function usableCertificates(pem: string): string[] {
  const found = pemCertificatesIn(pem);
  if (found.length === 0) throw new Error('no PEM certificate');
  for (const certificate of found) void new X509Certificate(certificate);
  return found;
}
