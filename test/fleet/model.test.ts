/**
 * Lookups through random fleets beside a reference model: the answer, which agents get a request
 * in which order, at most eight, pull secrets on chosen nodes only, and an end in time.
 */
import * as fc from 'fast-check';
import t, { type Test } from 'tap';
import { AgentError, type AgentErrorCode } from '../../src/fleet/connection.ts';
import { Ranking } from '../../src/fleet/discovery.ts';
import type { FactsErrorCode } from '../../src/images/facts/facts.ts';
import { sized } from '../support/exhaustive.ts';
import { digestOf, factsOf, failureOf, requestFor } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { type Answer, cut, denied, hanging, type LocalAgent, startFleet } from './support.ts';

const timeoutMs = 14_000;
/** Agents that failed are asked for their information again. */
const tickMs = 5000;
const image = `registry.example/team/app@${digestOf('app')}`;
const lie = 's390x';

const failing = (code: AgentErrorCode) => (): never => {
  throw new AgentError(code, 'no answer');
};

/** Answers of an agent that tell nothing of the image. */
const failures = {
  lost: cut,
  failed: failing('failed'),
  rejected: failing('bad-answer'),
  'another image': () => factsOf('registry.example/team/other:1', { digest: digestOf('app') }),
  'another digest': () => factsOf(image, { digest: digestOf('other') }),
  'no platform': () => factsOf(image, { platforms: [{ os: '', architecture: lie }] }),
} satisfies Record<string, Answer>;
const codes = [
  'not-found',
  'too-large',
  'unauthorized',
  'forbidden',
  'unavailable',
  'timeout',
] as const satisfies readonly FactsErrorCode[];

/** `hangs`: it never answers. `dead`: it never gave any information. */
type Behavior = 'facts' | (typeof codes)[number] | keyof typeof failures | 'hangs' | 'dead';
const behaviors: readonly Behavior[] = [
  'facts',
  ...codes,
  ...(Object.keys(failures) as (keyof typeof failures)[]),
  'hangs',
  'hangs',
  'dead',
];

interface ModelAgent {
  readonly name: string;
  readonly group: string;
  readonly behavior: Behavior;
  /** Whether its node may receive pull secrets. */
  readonly isTrusted: boolean;
}

interface Result {
  /** The error code of the answer, `facts` if it has none. */
  readonly code: string;
  /** Names of agents, in the order of requests. */
  readonly asked: readonly string[];
  readonly tookMs: number;
}

/** Failures after which an agent gets no further lookup until it answers `/v1/info` again. */
const faults: ReadonlySet<Behavior> = new Set<Behavior>(['lost', 'failed']);

/** @param ranked all agents in the order of lookups @param down names of agents that get none */
function expected(ranked: readonly ModelAgent[], hasSecrets: boolean, down: readonly string[] = []): Result {
  const allowed = ranked.filter(({ isTrusted }) => isTrusted || !hasSecrets);
  // Nobody knows the group of an agent that never answered.
  const order = [...new Set(ranked.flatMap(({ group, behavior }) => (behavior === 'dead' ? [] : [group])))];
  const groups = order
    .map((name) =>
      allowed
        .filter((agent) => agent.group === name && agent.behavior !== 'dead' && !down.includes(agent.name))
        .slice(0, 2),
    )
    .filter((agents) => agents.length > 0);
  const asked: string[] = [];
  let tookMs = 0;
  let timeouts = 0;
  let answer: string | undefined;
  for (const [index, agents] of groups.entries()) {
    for (const [place, { name, behavior }] of agents.entries()) {
      const leftMs = timeoutMs - tookMs;
      if (asked.length === 8 || (asked.length > 0 && leftMs < 300)) break;
      asked.push(name);
      const isLast = index === groups.length - 1 && place === agents.length - 1;
      if (behavior === 'hangs') tookMs += isLast ? leftMs : leftMs / 2;
      else if (behavior === 'timeout') {
        answer ??= behavior;
        timeouts += 1;
        if (timeouts === 2) return { code: answer, asked, tookMs };
      } else if (behavior === 'unauthorized' || behavior === 'forbidden' || behavior === 'unavailable') {
        const isBetter = answer === undefined || answer === 'timeout';
        if (isBetter || (answer === 'unavailable' && behavior !== 'unavailable')) answer = behavior;
        break;
      } else if (!(behavior in failures)) return { code: behavior, asked, tookMs };
    }
  }
  if (allowed.length < ranked.length && asked.length === 0) answer = 'forbidden';
  return { code: answer ?? (timeoutMs - tookMs < 300 ? 'timeout' : 'unavailable'), asked, tookMs };
}

function open(t: Test, given: readonly ModelAgent[], credentials: readonly string[]) {
  const clock = createFakeClock();
  let passing = Promise.resolve();
  const asked: string[] = [];
  const trusted = new Set(given.filter(({ isTrusted }) => isTrusted).map(({ name }) => name));
  const timeOut = async (ms: number, signal: AbortSignal): Promise<void> => {
    await clock.advance(ms);
    // Agents are told whole milliseconds.
    while (!signal.aborted) await clock.advance(0.5);
  };
  const agents = given.map(({ name, group, behavior }): LocalAgent => {
    const answer = answerOf(behavior);
    const facts: Answer = (body, signal) => {
      asked.push(name);
      if ((body.auths !== undefined) !== credentials.length > 0) throw new Error('other credentials');
      // Only agents that hang let time pass.
      if (behavior === 'hangs') passing = passing.then(() => timeOut(body.deadlineMs + 100, signal));
      return answer(body, signal);
    };
    const script = { fingerprint: group, facts, ...(behavior === 'dead' && { info: cut }) };
    return { url: `https://${name}`, node: name, script, requests: [] };
  });
  const pullSecretNodes = {
    selector: 'trusted',
    has: (node: string) => trusted.has(node),
    ready: () => Promise.resolve(),
  };
  const { fleet } = startFleet(t, agents, { clock, pullSecretNodes });
  return {
    fleet,
    lookup: async () => {
      asked.length = 0;
      const started = clock.monotonic();
      const facts = await fleet.lookup(requestFor(image, { credentials }), { signal: neverAborted });
      const right = facts.error ? failureOf(image, 'timeout') : factsOf(image);
      if (facts.digest !== right.digest || facts.platforms.length !== right.platforms.length)
        throw new Error('other facts');
      return { code: facts.error?.code ?? 'facts', asked, tookMs: clock.monotonic() - started };
    },
  };
}

function answerOf(behavior: Behavior): Answer {
  if (behavior === 'facts' || behavior === 'dead') return () => factsOf(image);
  if (behavior === 'hangs') return hanging;
  return behavior in failures
    ? failures[behavior as keyof typeof failures]
    : denied(behavior as FactsErrorCode);
}

t.test(
  'property: a lookup asks the agents that the model asks, and answers as the model in time',
  async (t) => {
    const nodes = Array.from({ length: 12 }, (_, index) => ({ url: '', node: `node-${index}` }));
    const rank = new Ranking(nodes).order('registry.example/team/app').map(({ node }) => node);
    // A few behaviors in each fleet, so that they meet.
    const fleets = fc
      .uniqueArray(fc.constantFrom(...behaviors), { minLength: 1, maxLength: 4 })
      .chain((some) => {
        const group = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
        const agent = fc.record({ group, behavior: fc.constantFrom(...some), isTrusted: fc.boolean() });
        return fc.array(agent, { minLength: 1, maxLength: 12, size: 'max' });
      });
    async function check(agents: readonly Omit<ModelAgent, 'name'>[], credentials: readonly string[]) {
      const given = agents.map((agent, index) => ({ ...agent, name: `node-${index}` }));
      const ranked = rank.flatMap((name) => given.find((each) => each.name === name) ?? []);
      const { fleet, lookup } = open(t, given, credentials);
      try {
        await fleet.grouped(neverAborted);
        const first = expected(ranked, credentials.length > 0);
        equal(await lookup(), first);
        if (first.tookMs >= tickMs) return;
        const down = ranked.flatMap(({ name, behavior }) =>
          first.asked.includes(name) && faults.has(behavior) ? [name] : [],
        );
        equal(await lookup(), expected(ranked, credentials.length > 0, down));
      } finally {
        fleet.close();
      }
    }
    const secrets = fc.constantFrom([], [], ['x']);
    await fc.assert(fc.asyncProperty(fleets, secrets, check), { numRuns: sized(1000, 5000) });
  },
);

function equal(found: Result, wanted: Result): void {
  const [is, should] = [found, wanted].map((value) => JSON.stringify(value));
  if (is !== should) throw new Error(`${is} instead of ${should}`);
}
