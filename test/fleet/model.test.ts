/**
 * Lookups through random fleets beside a reference model: the answer, which agents are asked in which order, and
 * that it ends in time.
 */
import { Readable } from 'node:stream';
import * as fc from 'fast-check';
import t from 'tap';
import { AgentError, type AgentConnection } from '../../src/fleet/connection.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import { Ranking } from '../../src/fleet/rank.ts';
import type { FactsErrorCode } from '../../src/images/facts/facts.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { sized } from '../support/exhaustive.ts';
import { factsOf, failureOf, requestFor } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';

const timeoutMs = 14_000;
const image = 'registry.example/team/app:1';

/** Facts, an error of the image, or how the agent fails. `slow`: it begins to answer, and never ends. */
type Behavior = 'facts' | FactsErrorCode | 'lost' | 'silent' | 'slow';
const behaviors: readonly Behavior[] = [
  'facts',
  'not-found',
  'too-large',
  'unauthorized',
  'forbidden',
  'unavailable',
  'timeout',
  'lost',
  'silent',
  'slow',
];

interface ModelAgent {
  readonly url: string;
  readonly group: string;
  readonly behavior: Behavior;
}

/** The error code of the answer, `facts` if it has none; and the agents that are asked. */
function expected(ranked: readonly ModelAgent[]): { code: string; asked: string[]; tookMs: number } {
  const groups = [...Map.groupBy(ranked, ({ group }) => group).values()].map((agents) => agents.slice(0, 2));
  const asked: string[] = [];
  let tookMs = 0;
  let answer: string | undefined;
  for (const [index, agents] of groups.entries()) {
    for (const [place, { url, behavior }] of agents.entries()) {
      const leftMs = timeoutMs - tookMs;
      if (asked.length === 8 || (asked.length > 0 && leftMs < 300)) break;
      asked.push(url);
      const isLast = index === groups.length - 1 && place === agents.length - 1;
      const limitMs = isLast ? leftMs : leftMs / 2;
      if (behavior === 'lost') continue;
      if (behavior === 'silent') tookMs += Math.min(3000, limitMs);
      else if (behavior === 'slow') tookMs += limitMs;
      else if (behavior === 'timeout') answer ??= behavior;
      else if (behavior === 'unauthorized' || behavior === 'forbidden' || behavior === 'unavailable') {
        const isBetter = answer === undefined || answer === 'timeout';
        if (isBetter || (answer === 'unavailable' && behavior !== 'unavailable')) answer = behavior;
        break;
      } else return { code: behavior, asked, tookMs };
    }
  }
  return { code: answer ?? (timeoutMs - tookMs < 300 ? 'timeout' : 'unavailable'), asked, tookMs };
}

/** Agents in this process, so that thousands of fleets take seconds. */
function connectionTo(agents: readonly ModelAgent[], asked: string[], clock: Clock): AgentConnection {
  const agentAt = (url: string) => agents.find((agent) => agent.url === url);
  return {
    json: async (url, path, { signal }) => {
      if (path === '/v1/info') return { credentialFingerprint: agentAt(url)?.group };
      asked.push(url);
      const behavior = agentAt(url)?.behavior ?? 'lost';
      const late = () => Promise.reject(new AgentError('timeout', url, 'aborted'));
      if (behavior === 'lost') throw new AgentError('lost', url, 'lost');
      if (behavior === 'slow') await clock.sleep(1e9, signal).catch(late);
      if (behavior === 'silent') {
        await clock.sleep(3000, signal).catch(late);
        throw new AgentError('unreachable', url, 'silent');
      }
      return behavior === 'facts' ? factsOf(image) : failureOf(image, behavior as FactsErrorCode);
    },
    lines: () => Readable.from([]),
    close: () => Promise.resolve(),
  };
}

async function check(given: readonly (readonly [group: string, behavior: Behavior])[]): Promise<void> {
  const agents = given.map(([group, behavior], index) => ({
    url: `https://a${index}:9443`,
    group,
    behavior,
  }));
  const clock = createFakeClock();
  const asked: string[] = [];
  const fleet = createFleet({
    discovery: { current: () => agents, ready: () => Promise.resolve(), onChange: () => {} },
    connection: connectionTo(agents, asked, clock),
    clock,
    log: silentLog,
    metrics: createMetrics(),
    lookupTimeoutMs: timeoutMs,
  });
  try {
    await fleet.grouped(neverAborted);
    const request = requestFor(image);
    const ranked = new Ranking(agents).order(request.reference.repository);
    const byUrl = new Map(agents.map((agent) => [agent.url, agent]));
    const model = expected(ranked.flatMap(({ url }) => byUrl.get(url) ?? []));
    const found: { code?: string } = {};
    const started = clock.monotonic();
    const looking = fleet.lookup(request, { signal: neverAborted }).then(({ error }) => {
      found.code = error?.code ?? 'facts';
      return clock.monotonic() - started;
    });
    for (let ms = 0; ms <= timeoutMs && found.code === undefined; ms += 50) await clock.advance(50);
    const tookMs = await looking;
    const is = JSON.stringify({ code: found.code, asked });
    const wanted = JSON.stringify({ code: model.code, asked: model.asked });
    if (is !== wanted) throw new Error(`${is} instead of ${wanted}`);
    if (tookMs > timeoutMs) throw new Error(`took ${tookMs} ms`);
  } finally {
    fleet.close();
  }
}

t.test('property: a lookup asks the agents that the model asks, and answers in time', async () => {
  const agent = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.constantFrom(...behaviors));
  await fc.assert(fc.asyncProperty(fc.array(agent, { minLength: 1, maxLength: 14 }), check), {
    numRuns: sized(200, 5000),
  });
});
