/**
 * Agents behind a DNS name: `dns:archwright-agents.example:9443`, where a headless Service (or any other
 * name) has one address per agent. The name is resolved again and again; while it cannot be resolved, the
 * last good answer stands.
 */
import { lookup } from 'node:dns/promises';
import { systemClock, type Clock } from '../async/clock.ts';
import { limited, unlessAborted } from '../async/wait.ts';
import type { Log } from '../telemetry/log.ts';
import { agentUrl, createAgentList, maxAgents, type Discovery } from './discovery.ts';
import { messageOf } from '../names/printable.ts';

interface DnsName {
  readonly name: string;
  readonly port: number;
}

export interface DnsDiscoveryOptions extends DnsName {
  readonly log: Log;
  /** Addresses of a name; the system's resolver by default, so that search domains hold. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  readonly clock?: Clock;
}

/** Cluster DNS answers carry a TTL of 5 to 30 s; agents come and go more rarely than that. */
const refreshMs = 10_000;
/** Without a first answer, no agent is known. */
const retryMs = 1000;
/** The system's resolver may take 5 s for one server; after that there is no answer to wait for. */
const timeoutMs = 5000;

const systemResolver = async (name: string): Promise<string[]> =>
  (await lookup(name, { all: true })).map(({ address }) => address);

/** Reads `dns:name:port`. @throws TypeError for anything else */
export function parseDnsName(text: string): DnsName {
  const match = /^dns:(?<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9.])?):(?<port>\d{1,5})$/i.exec(text.trim());
  const port = Number(match?.groups?.['port']);
  const name = match?.groups?.['name'];
  if (name === undefined || port < 1 || port > 65_535) {
    throw new TypeError(
      `${JSON.stringify(text.slice(0, 300))} is not a DNS name of agents; write dns:name:port`,
    );
  }
  return { name, port };
}

/** Makes a discovery that resolves a name until it is closed. */
export function dnsDiscovery(options: DnsDiscoveryOptions): Discovery {
  const { name, port, log, resolve = systemResolver, clock = systemClock } = options;
  const agents = createAgentList();
  const closing = new AbortController();
  let failing = false;

  function failed(error: unknown): undefined {
    if (!failing && !closing.signal.aborted) {
      log.warn(
        { name, error: messageOf(error), agents: agents.current().length },
        'agents cannot be resolved; those that are known stay in use',
      );
    }
    failing = true;
  }

  async function follow(): Promise<void> {
    for (let pauseMs = retryMs; !closing.signal.aborted; await clock.sleep(pauseMs, closing.signal)) {
      const resolving = (signal: AbortSignal) => unlessAborted(resolve(name), signal);
      const found = await limited(timeoutMs, closing.signal, resolving, clock.sleep).catch(failed);
      if (closing.signal.aborted) return;
      if (found === undefined) continue;
      if (failing) log.info({ name }, 'agents are resolved again');
      failing = false;
      pauseMs = refreshMs;
      const urls = new Set(found.slice(0, maxAgents).map((address) => agentUrl(address, port)));
      agents.set([...urls].map((url) => ({ url })));
    }
  }

  follow().catch((error: unknown) => {
    if (!closing.signal.aborted) throw error;
  });
  return {
    ...agents,
    close: () => {
      closing.abort();
      agents.close();
    },
  };
}
