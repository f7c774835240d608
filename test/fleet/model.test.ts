/**
 * Lookups through random fleets beside a reference model: the answer, which agents are asked in which order, and
 * that it ends in time.
 */
import * as fc from 'fast-check';
import t from 'tap';
import { AgentError, type AgentConnection } from '../../src/fleet/connection.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import { Ranking } from '../../src/fleet/rank.ts';
import type { FactsErrorCode } from '../../src/images/facts/facts.ts';
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
  let refusal: string | undefined;
  let isLate = false;
  for (const [index, agents] of groups.entries()) {
    for (const [place, { url, behavior }] of agents.entries()) {
      const leftMs = timeoutMs - tookMs;
      if (asked.length === 8 || (asked.length > 0 && leftMs < 300)) break;
      asked.push(url);
      const isLast = index === groups.length - 1 && place === agents.length - 1;
      const limitMs = isLast ? leftMs : leftMs / 2;
      if (behavior === 'lost') continue;
      if (behavior === 'silent') tookMs += Math.min(3000, Math.floor(limitMs - 100));
      else if (behavior === 'slow') tookMs += limitMs;
      else if (behavior === 'timeout') isLate = true;
      else if (behavior === 'unauthorized' || behavior === 'forbidden' || behavior === 'unavailable') {
        if (refusal === undefined || refusal === 'unavailable') refusal = behavior;
        break;
      } else return { code: behavior, asked, tookMs };
    }
  }
  const unanswered = isLate || timeoutMs - tookMs < 300 ? 'timeout' : 'unavailable';
  return { code: refusal ?? unanswered, asked, tookMs };
}

/** Agents in this process, so that thousands of fleets take seconds. */
function connectionTo(agents: readonly ModelAgent[], asked: string[]): AgentConnection {
  const agentAt = (url: string) => agents.find((agent) => agent.url === url);
  const forever = (signal: AbortSignal, url: string): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new AgentError('timeout', url, 'aborted')));
    });
  return {
    json: (url) => Promise.resolve({ credentialFingerprint: agentAt(url)?.group }),
    lines: async function* (url, _, { signal, onResponse }) {
      asked.push(url);
      const behavior = agentAt(url)?.behavior ?? 'lost';
      if (behavior === 'lost') throw new AgentError('lost', url, 'lost');
      if (behavior === 'silent') await forever(signal, url);
      onResponse?.();
      if (behavior === 'slow') await forever(signal, url);
      const facts = behavior === 'facts' ? factsOf(image) : failureOf(image, behavior as FactsErrorCode);
      yield JSON.stringify(facts);
    },
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
    connection: connectionTo(agents, asked),
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
