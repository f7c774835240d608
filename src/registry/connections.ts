/**
 * Kept-alive connections. Requests share a pool of connections only where trust, client certificate, reach and proxy are
 * the same, so that no request ever travels on a connection that it could not have opened itself.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { reveal } from '../telemetry/secret.ts';
import type { EndpointTls } from './endpoint.ts';
import type { Proxy } from './proxy.ts';
import { checkedLookup, type Reach, type Resolve } from './reach.ts';
import { TransportError } from './transport-error.ts';
import { certificatesIn, type Roots } from './trust.ts';
import { openTunnel } from './tunnel.ts';

/** More than the TLS settings of a node's hosts.toml files; the ones that are not in use go first. */
const maxPools = 64;

/** Idle connections: enough for the questions that follow each other, few enough for an agent's memory. */
const maxIdlePerHost = 4;

export interface ConnectionNeeds {
  readonly secure: boolean;
  readonly tls: EndpointTls;
  readonly reach: Reach;
  readonly proxy?: Proxy;
  readonly roots: Roots;
  /** Idle connections are closed after this. */
  readonly idleMs: number;
  readonly dialMs: number;
}

export interface Connections {
  agentFor(needs: ConnectionNeeds): HttpAgent;
  /** Closes every connection, idle or not. */
  close(): void;
}

/** @param resolve how names are resolved; by the system where it is left out */
export function createConnections(resolve?: Resolve): Connections {
  const pools = new Map<string, HttpAgent>();

  function trim(): void {
    for (const [id, agent] of pools) {
      if (pools.size < maxPools) return;
      if (Object.keys(agent.sockets).length > 0) continue;
      agent.destroy();
      pools.delete(id);
    }
  }

  return {
    agentFor: (needs) => {
      const id = poolId(needs);
      const existing = pools.get(id);
      if (existing) {
        pools.delete(id);
        pools.set(id, existing);
        return existing;
      }
      trim();
      const made = makeAgent(needs, resolve);
      pools.set(id, made);
      return made;
    },
    close: () => {
      for (const agent of pools.values()) agent.destroy();
      pools.clear();
    },
  };
}

function poolId({ secure, tls, reach, proxy, roots }: ConnectionNeeds): string {
  const parts = [
    secure ? 'https' : 'http',
    proxy
      ? `${proxy.url.href} ${proxy.authorization ? reveal(proxy.authorization) : ''}`
      : `direct ${reach.id}`,
    roots.id,
    String(tls.skipVerify),
    ...tls.ca,
    ...tls.client.flatMap(({ certificate, key }) => [certificate, reveal(key)]),
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

function makeAgent(needs: ConnectionNeeds, resolve: Resolve | undefined): HttpAgent {
  const lookup = checkedLookup(needs.reach, resolve);
  const keep = { keepAlive: true, maxFreeSockets: maxIdlePerHost, timeout: needs.idleMs };
  if (!needs.secure) {
    return new HttpAgent({ ...keep, ...(needs.proxy ? {} : { lookup }) });
  }
  const tls = { secureContext: secureContext(needs), rejectUnauthorized: !needs.tls.skipVerify };
  if (!needs.proxy) return new HttpsAgent({ ...keep, ...tls, lookup });
  return tunnelAgent(new HttpsAgent(keep), needs.proxy, needs, tls);
}

interface TlsSettings {
  readonly secureContext: SecureContext;
  readonly rejectUnauthorized: boolean;
}

/** Tunnels that are waited for by nobody end with the dial limit; the asker's abort closes what it was given. */
function tunnelAgent(agent: HttpsAgent, proxy: Proxy, needs: ConnectionNeeds, tls: TlsSettings): HttpsAgent {
  agent.createConnection = (options, created) => {
    const host = options.host ?? '';
    const abort = (options as { abort?: AbortSignal }).abort;
    const limit = AbortSignal.timeout(needs.dialMs);
    openTunnel({
      proxy,
      host,
      port: Number(options.port),
      proxyTls: { secureContext: tls.secureContext },
      targetTls: { ...tls, servername: isIP(host) === 0 ? host : '', host },
      signal: abort ? AbortSignal.any([limit, abort]) : limit,
    }).then(
      (socket) => created?.(null, socket),
      (error: unknown) => created?.(error as Error, undefined as never),
    );
    return undefined;
  };
  return agent;
}

/** Building one parses some hundred certificates, so it is done once per pool. */
function secureContext({ tls, roots }: ConnectionNeeds): SecureContext {
  try {
    return createSecureContext({
      ca: [...roots.certificates, ...tls.ca.flatMap(usableCertificates)],
      cert: tls.client.map(({ certificate }) => certificate),
      key: tls.client.map(({ key }) => reveal(key)),
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
