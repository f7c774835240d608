/**
 * Kept-alive connections. Requests share a pool of connections only where trust, client certificate, reach and proxy are
 * the same, so that no request ever travels on a connection that it could not have opened itself.
 */
import { createHash } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { reveal } from '../telemetry/secret.ts';
import type { TlsSettings } from './tls-settings.ts';
import type { Proxy } from './proxy.ts';
import { checkedLookup, type Reach, type Resolve } from './reach.ts';
import { createSecureContexts, trustId, type SecureContexts } from './secure-contexts.ts';
import type { Roots } from './trust.ts';
import { openTunnel } from './tunnel.ts';

/** More than the TLS settings of a node's hosts.toml files; the ones that are not in use go first. */
const maxPools = 64;

/** Idle connections: enough for the questions that follow each other, few enough for an agent's memory. */
const maxIdlePerHost = 4;

export interface ConnectionNeeds {
  readonly secure: boolean;
  readonly tls: TlsSettings;
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
  const contexts = createSecureContexts();

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
      const made = makeAgent(needs, contexts, resolve);
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
  const proxyUser = proxy?.authorization ? reveal(proxy.authorization) : '';
  const way = proxy ? ['proxy', proxy.url.href, proxyUser] : ['direct', reach.id];
  const parts = [secure, tls.skipVerify, trustId({ roots, tls }), ...way];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

function makeAgent(
  needs: ConnectionNeeds,
  contexts: SecureContexts,
  resolve: Resolve | undefined,
): HttpAgent {
  const { roots, proxy } = needs;
  const lookup = checkedLookup(needs.reach, resolve);
  const keep = { keepAlive: true, maxFreeSockets: maxIdlePerHost, timeout: needs.idleMs };
  if (!needs.secure) return new HttpAgent({ ...keep, ...(proxy ? {} : { lookup }) });
  const tls = { secureContext: contexts.contextFor(needs), rejectUnauthorized: !needs.tls.skipVerify };
  if (!proxy) return new HttpsAgent({ ...keep, ...tls, lookup });
  // The proxy is no endpoint: it sees none of the endpoint's certificates.
  const proxyTls = { secureContext: contexts.contextFor({ roots, tls: { ca: [], client: [] } }) };
  return tunnelAgent(new HttpsAgent(keep), { proxy, proxyTls, dialMs: needs.dialMs, tls });
}

interface TunnelSettings {
  readonly proxy: Proxy;
  readonly dialMs: number;
  readonly proxyTls: ConnectionOptions;
  readonly tls: ConnectionOptions;
}

/** A tunnel that is being opened ends with the dial limit, or when its asker gives up. */
function tunnelAgent(agent: HttpsAgent, { proxy, dialMs, proxyTls, tls }: TunnelSettings): HttpsAgent {
  agent.createConnection = (options, created) => {
    const host = options.host ?? '';
    const abort = (options as { abort?: AbortSignal }).abort;
    const limit = AbortSignal.timeout(dialMs);
    openTunnel({
      proxy,
      host,
      port: Number(options.port),
      proxyTls,
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
