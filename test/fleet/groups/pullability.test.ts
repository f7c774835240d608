import { createFakeClock } from '../../support/fake-clock.ts';
import t from 'tap';
import type { MatchedCredential } from '../../../src/credentials/credential.ts';
import type { AgentAddress } from '../../../src/fleet/discovery/discovery.ts';
import { unknownGroup, type Members } from '../../../src/fleet/groups/groups.ts';
import { Pullability, pullResultOf } from '../../../src/fleet/groups/pullability.ts';
import type { FactsErrorCode, ImageFacts } from '../../../src/images/facts/facts.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { factsOf, failureOf, requestFor } from '../support.ts';

const image = 'registry.example/team/app:1';
const request = requestFor(image);
const good = factsOf(image);
const refused = failureOf(image, 'unauthorized');
const unreachable = failureOf(image, 'unavailable');
const minute = 60_000;

const agent = (url: string): AgentAddress => ({ url });

/** `groupOf` maps agents to groups; tests change it. */
function setup(groupOf: Record<string, string>, maxRepositories?: number) {
  const clock = createFakeClock();
  const groups = {
    groupOf: ({ url }: { readonly url: string }) => groupOf[url] ?? unknownGroup,
    members: () =>
      new Map(
        [...new Set(Object.values(groupOf))]
          .filter((name) => name !== unknownGroup)
          .map((fingerprint): [string, Members] => [
            fingerprint,
            { fingerprint, agents: [], nodes: [], architectures: [] },
          ]),
      ),
  };
  const pullability = new Pullability(groups, clock, maxRepositories);
  return { pullability, clock, groupOf };
}

function credential(id: string): MatchedCredential {
  return {
    credential: { username: 'ann', password: secret('correct horse') },
    source: 'pull-secret',
    key: 'registry.example',
    origin: 'shop/regcred',
    id,
  };
}

t.test('each answer means able, refused, unreachable or unknown', async (t) => {
  const cases: [what: string, facts: ImageFacts, result: string | undefined][] = [
    ['facts', good, 'able'],
    ['facts from memory', factsOf(image, { source: 'memory' }), 'able'],
    ['older facts while the registry fails', factsOf(image, { stale: true }), undefined],
    ['an override', factsOf(image, { source: 'override' }), undefined],
    ...(
      [
        ['unauthorized', 'refused'],
        ['forbidden', 'refused'],
        ['unavailable', 'unreachable'],
        ['not-an-image', 'able'],
        ['not-found', undefined],
        ['rate-limited', undefined],
        ['timeout', undefined],
        ['too-large', undefined],
        ['digest-mismatch', undefined],
        ['unsupported-media-type', undefined],
        ['invalid-reference', undefined],
      ] satisfies [FactsErrorCode, string | undefined][]
    ).map(([code, result]): [string, ImageFacts, string | undefined] => [
      code,
      failureOf(image, code),
      result,
    ]),
  ];
  for (const [what, facts, result] of cases) t.equal(pullResultOf(facts), result, what);
});

t.test('results are kept per group and repository', async (t) => {
  const { pullability } = setup({ a1: 'a', b1: 'b', c1: 'c', d1: 'd' });
  t.strictSame(pullability.recall(request), {
    able: [],
    unable: [],
    missing: ['a', 'b', 'c', 'd'],
    due: [],
  });
  pullability.note(request, agent('a1'), good);
  pullability.note(request, agent('b1'), refused);
  pullability.note(request, agent('c1'), unreachable);
  const known = { able: ['a'], unable: ['b', 'c'], missing: ['d'], due: [] };
  t.strictSame(pullability.recall(request), known);
  t.strictSame(pullability.recall(requestFor('registry.example/team/app:2')), known, 'another tag');
  t.strictSame(
    pullability.recall(requestFor('registry.example/team/other:1')).missing,
    ['a', 'b', 'c', 'd'],
    'another repository',
  );
  t.equal(pullability.size, 1);
});

t.test('a newer result replaces an older one', async (t) => {
  const { pullability } = setup({ a1: 'a', a2: 'a', b1: 'b' });
  pullability.note(request, agent('a1'), refused);
  pullability.note(request, agent('a2'), good);
  t.strictSame(pullability.recall(request).able, ['a']);
  pullability.note(request, agent('a1'), failureOf(image, 'not-found'));
  t.strictSame(pullability.recall(request).able, ['a'], 'an unknown result changes nothing');
  pullability.note(request, agent('a1'), failureOf(image, 'forbidden'));
  t.strictSame(pullability.recall(request).unable, ['a']);
});

t.test('results are kept per set of pull credentials, whatever their order', async (t) => {
  const { pullability } = setup({ a1: 'a', b1: 'b' });
  const [one, two] = [credential('one'), credential('two')];
  pullability.note(request, agent('b1'), refused);
  pullability.note(requestFor(image, [one, two]), agent('b1'), good);
  t.strictSame(pullability.recall(request).unable, ['b']);
  t.strictSame(pullability.recall(requestFor(image, [two, one])).able, ['b']);
  t.strictSame(pullability.recall(requestFor(image, [one])).missing, ['a', 'b']);
});

t.test('a result that depends on a service account serves only that account', async (t) => {
  const { pullability } = setup({ a1: 'a', b1: 'b' });
  const builder = { ...request, serviceAccount: { namespace: 'shop', name: 'builder' } };
  const cook = { ...request, serviceAccount: { namespace: 'shop', name: 'cook' } };
  pullability.note(builder, agent('a1'), factsOf(image, { credentialSource: 'service-account' }));
  pullability.note(builder, agent('b1'), good);
  t.match(pullability.recall(builder), { able: ['a', 'b'], missing: [] });
  t.match(pullability.recall(cook), { able: ['b'], missing: ['a'] });
  t.match(pullability.recall(request), { able: ['b'], missing: ['a'] });
  pullability.note(cook, agent('b1'), { ...refused, credentialSource: 'service-account' });
  t.match(pullability.recall(cook), { able: [], unable: ['b'] });
  t.match(pullability.recall(builder), { able: ['a', 'b'] });
});

t.test('each result becomes due, then expires', async (t) => {
  const cases: [ImageFacts, 'able' | 'unable', dueMs: number, lifetimeMs: number][] = [
    [good, 'able', 10 * minute, 60 * minute],
    [refused, 'unable', 2 * minute, 10 * minute],
    [unreachable, 'unable', minute / 2, 2 * minute],
  ];
  for (const [facts, list, dueMs, lifetimeMs] of cases) {
    const { pullability, clock } = setup({ a1: 'a' });
    pullability.note(request, agent('a1'), facts);
    await clock.advance(dueMs - 1);
    t.match(pullability.recall(request), { [list]: ['a'], due: [] });
    await clock.advance(1);
    t.match(pullability.recall(request), { [list]: ['a'], due: ['a'], missing: [] });
    await clock.advance(lifetimeMs - dueMs - 1);
    t.match(pullability.recall(request), { [list]: ['a'], due: ['a'] });
    await clock.advance(1);
    t.strictSame(pullability.recall(request), { able: [], unable: [], missing: ['a'], due: [] });
  }
});

t.test('an unknown result is retried after a minute', async (t) => {
  const { pullability, clock } = setup({ a1: 'a' });
  pullability.noteUnknown(request, 'a');
  const nothing = { able: [], unable: [], missing: [], due: [] };
  t.strictSame(pullability.recall(request), nothing);
  await clock.advance(minute - 1);
  t.strictSame(pullability.recall(request), nothing);
  await clock.advance(1);
  t.strictSame(pullability.recall(request), { ...nothing, missing: ['a'] });
});

t.test('an unknown result neither replaces nor extends an earlier one', async (t) => {
  const { pullability, clock } = setup({ a1: 'a' });
  pullability.note(request, agent('a1'), refused);
  await clock.advance(2 * minute);
  pullability.noteUnknown(request, 'a');
  t.match(pullability.recall(request), { unable: ['a'], due: [] });
  await clock.advance(minute);
  t.match(pullability.recall(request), { unable: ['a'], due: ['a'] });
  await clock.advance(7 * minute);
  t.match(pullability.recall(request), { unable: [], missing: ['a'] });
});

t.test('after an agent changes its group, its results for the old group are dropped', async (t) => {
  const { pullability, groupOf } = setup({ a1: 'a', a2: 'a', b1: 'b' });
  pullability.note(request, agent('a1'), refused);
  groupOf['a1'] = 'b';
  t.strictSame(pullability.recall(request), { able: [], unable: [], missing: ['b', 'a'], due: [] });
  groupOf['a1'] = unknownGroup;
  t.match(
    pullability.recall(request),
    { unable: ['a'] },
    'the agent left; its result may hold for the rest of its group',
  );
});

t.test('results of agents without a fingerprint are ignored', async (t) => {
  const { pullability } = setup({ a1: 'a' });
  pullability.note(request, agent('x1'), refused);
  t.strictSame(pullability.recall(request), { able: [], unable: [], missing: ['a'], due: [] });
  t.equal(pullability.size, 0);
});

t.test('the least recently used repository is removed first', async (t) => {
  const { pullability } = setup({ a1: 'a' }, 2);
  const [one, two, three] = ['one', 'two', 'three'].map((name) => requestFor(`registry.example/${name}:1`));
  if (!one || !two || !three) throw new Error('three requests');
  pullability.note(one, agent('a1'), good);
  pullability.note(two, agent('a1'), good);
  pullability.recall(one);
  pullability.note(three, agent('a1'), good);
  t.equal(pullability.size, 2);
  const known = (): readonly number[] =>
    [one, two, three].map((each) => pullability.recall(each).able.length);
  t.strictSame(known(), [1, 0, 1], 'recall used the first');
  pullability.note(one, agent('a1'), good);
  pullability.note(two, agent('a1'), good);
  t.strictSame(known(), [1, 1, 0], 'note used the first');
});

t.test('results of at most 64 groups are kept, the last ones', async (t) => {
  const names = Array.from({ length: 65 }, (_, index) => `g${String(index).padStart(2, '0')}`);
  const { pullability } = setup(Object.fromEntries(names.map((name) => [name, name])));
  for (const name of names) pullability.note(request, agent(name), good);
  t.strictSame(pullability.recall(request).missing, ['g00']);
  t.equal(pullability.recall(request).able.length, 64);
});
