/**
 * Agents behind a DNS name: `dns:archwright-agents.example:9443`, where a headless Service (or any other name) has one
 * address per agent. The name is resolved again and again; while it cannot be resolved, the last good answer stands.
 */
import { lookup } from 'node:dns/promises';
import { unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import { agentUrl } from './agent-url.ts';
import { createChanges, maxAgents } from './changes.ts';
import type { Discovery } from './discovery.ts';

export interface DnsName {
  readonly name: string;
  readonly port: number;
}

export interface DnsDiscoveryOptions extends DnsName {
  readonly log: Log;
  /** Addresses of a name; the system's resolver by default, so that search domains hold. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  readonly refreshMs?: number;
  readonly retryMs?: number;
  readonly timeoutMs?: number;
}

/** Cluster DNS answers carry a TTL of 5 to 30 s; agents come and go more rarely than that. */
const defaultRefreshMs = 10_000;
/** Without a first answer no agent can be asked; resolve again soon. */
const defaultRetryMs = 1000;
/** The system's resolver may take 5 s for one server; after that there is no answer to wait for. */
const defaultTimeoutMs = 5000;

/**
 * Reads `dns:name:port`.
 * @throws TypeError where it is something else
 */
export function parseDnsName(text: string): DnsName {
  const match = /^dns:(?<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9.])?):(?<port>\d{1,5})$/i.exec(text.trim());
  const port = Number(match?.groups?.['port']);
  const name = match?.groups?.['name'];
  if (name === undefined || port < 1 || port > 65_535) {
    throw new TypeError(
      `${JSON.stringify(text.slice(0, 300))} is no DNS name of agents; write dns:name:port`,
    );
  }
  return { name, port };
}

/** Makes a discovery that resolves a name until it is closed. */
export function dnsDiscovery(options: DnsDiscoveryOptions): Discovery {
  const resolve = options.resolve ?? systemResolve;
  const refreshMs = options.refreshMs ?? defaultRefreshMs;
  const retryMs = options.retryMs ?? defaultRetryMs;
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const changes = createChanges();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let answered = false;
  let failing = false;

  async function refresh(): Promise<void> {
    const found = await withTimeout(resolve(options.name), timeoutMs, options.name).catch(failed);
    if (closed) return;
    if (found) {
      if (failing) options.log.info({ name: options.name }, 'agents are resolved again');
      failing = false;
      answered = true;
      const urls = new Set(found.slice(0, maxAgents).map((address) => agentUrl(address, options.port)));
      changes.set([...urls].map((url) => ({ url })));
    }
    timer = setTimeout(() => void refresh(), answered ? refreshMs : retryMs);
  }

  function failed(error: unknown): undefined {
    if (!failing && !closed) {
      const message = error instanceof Error ? error.message : String(error);
      options.log.warn(
        { name: options.name, error: message, agents: changes.current().length },
        'agents cannot be resolved; those that are known stay in use',
      );
    }
    failing = true;
  }

  void refresh();
  return {
    current: changes.current,
    ready: changes.ready,
    onChange: changes.onChange,
    close: () => {
      closed = true;
      clearTimeout(timer);
      changes.close();
    },
  };
}

async function systemResolve(name: string): Promise<string[]> {
  const addresses = await lookup(name, { all: true });
  return addresses.map((entry) => entry.address);
}

async function withTimeout<T>(promise: Promise<T>, timeoutMs: number, name: string): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new Error(`${name} was not resolved within ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    return await unlessAborted(promise, late.signal);
  } finally {
    clearTimeout(timer);
  }
}
