import { createFakeClock } from '../../support/fake-clock.ts';
import t from 'tap';
import type { MatchedCredential } from '../../../src/credentials/credential.ts';
import type { AgentAddress } from '../../../src/fleet/discovery/discovery.ts';
import { unknownGroup, type Members } from '../../../src/fleet/groups/groups.ts';
import { Pullability, pullResultOf } from '../../../src/fleet/groups/pullability.ts';
import type { FactsErrorCode, ImageFacts } from '../../../src/images/facts/facts.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { factsOf, failureOf, questionOf } from '../support.ts';

const image = 'registry.example/team/app:1';
const question = questionOf(image);
const good = factsOf(image);
const refused = failureOf(image, 'unauthorized');
const unreachable = failureOf(image, 'unavailable');
const minute = 60_000;

const agent = (url: string): AgentAddress => ({ url });

/** Groups by agent; a test changes them. */
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

t.test('what an answer tells', async (t) => {
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

t.test('results by group, for the repository', async (t) => {
  const { pullability } = setup({ a1: 'a', b1: 'b', c1: 'c', d1: 'd' });
  t.strictSame(pullability.recall(question), {
    able: [],
    unable: [],
    missing: ['a', 'b', 'c', 'd'],
    due: [],
  });
  pullability.note(question, agent('a1'), good);
  pullability.note(question, agent('b1'), refused);
  pullability.note(question, agent('c1'), unreachable);
  const known = { able: ['a'], unable: ['b', 'c'], missing: ['d'], due: [] };
  t.strictSame(pullability.recall(question), known);
  t.strictSame(pullability.recall(questionOf('registry.example/team/app:2')), known, 'another tag');
  t.strictSame(
    pullability.recall(questionOf('registry.example/team/other:1')).missing,
    ['a', 'b', 'c', 'd'],
    'another repository',
  );
  t.equal(pullability.size, 1);
});

t.test('the last answer counts', async (t) => {
  const { pullability } = setup({ a1: 'a', a2: 'a', b1: 'b' });
  pullability.note(question, agent('a1'), refused);
  pullability.note(question, agent('a2'), good);
  t.strictSame(pullability.recall(question).able, ['a']);
  pullability.note(question, agent('a1'), failureOf(image, 'not-found'));
  t.strictSame(pullability.recall(question).able, ['a'], 'what tells neither changes nothing');
  pullability.note(question, agent('a1'), failureOf(image, 'forbidden'));
  t.strictSame(pullability.recall(question).unable, ['a']);
});

t.test('what pull credentials open is kept apart, whatever their order', async (t) => {
  const { pullability } = setup({ a1: 'a', b1: 'b' });
  const [one, two] = [credential('one'), credential('two')];
  pullability.note(question, agent('b1'), refused);
  pullability.note(questionOf(image, [one, two]), agent('b1'), good);
  t.strictSame(pullability.recall(question).unable, ['b']);
  t.strictSame(pullability.recall(questionOf(image, [two, one])).able, ['b']);
  t.strictSame(pullability.recall(questionOf(image, [one])).missing, ['a', 'b']);
});

t.test('what depends on a service account is told to its pods only', async (t) => {
  const { pullability } = setup({ a1: 'a', b1: 'b' });
  const builder = { ...question, serviceAccount: { namespace: 'shop', name: 'builder' } };
  const cook = { ...question, serviceAccount: { namespace: 'shop', name: 'cook' } };
  pullability.note(builder, agent('a1'), factsOf(image, { credentialSource: 'service-account' }));
  pullability.note(builder, agent('b1'), good);
  t.match(pullability.recall(builder), { able: ['a', 'b'], missing: [] });
  t.match(pullability.recall(cook), { able: ['b'], missing: ['a'] });
  t.match(pullability.recall(question), { able: ['b'], missing: ['a'] });
  pullability.note(cook, agent('b1'), { ...refused, credentialSource: 'service-account' });
  t.match(pullability.recall(cook), { able: [], unable: ['b'] });
  t.match(pullability.recall(builder), { able: ['a', 'b'] });
});

t.test('each result is asked for again after a while, and counts no more after a longer one', async (t) => {
  const cases: [ImageFacts, 'able' | 'unable', dueMs: number, lifetimeMs: number][] = [
    [good, 'able', 10 * minute, 60 * minute],
    [refused, 'unable', 2 * minute, 10 * minute],
    [unreachable, 'unable', minute / 2, 2 * minute],
  ];
  for (const [facts, list, dueMs, lifetimeMs] of cases) {
    const { pullability, clock } = setup({ a1: 'a' });
    pullability.note(question, agent('a1'), facts);
    await clock.advance(dueMs - 1);
    t.match(pullability.recall(question), { [list]: ['a'], due: [] });
    await clock.advance(1);
    t.match(pullability.recall(question), { [list]: ['a'], due: ['a'], missing: [] });
    await clock.advance(lifetimeMs - dueMs - 1);
    t.match(pullability.recall(question), { [list]: ['a'], due: ['a'] });
    await clock.advance(1);
    t.strictSame(pullability.recall(question), { able: [], unable: [], missing: ['a'], due: [] });
  }
});

t.test('an unknown result is not looked up again at once', async (t) => {
  const { pullability, clock } = setup({ a1: 'a' });
  pullability.noteUnknown(question, 'a');
  const nothing = { able: [], unable: [], missing: [], due: [] };
  t.strictSame(pullability.recall(question), nothing);
  await clock.advance(minute - 1);
  t.strictSame(pullability.recall(question), nothing);
  await clock.advance(1);
  t.strictSame(pullability.recall(question), { ...nothing, missing: ['a'] });
});

t.test('an unknown result leaves an earlier one, and does not prolong it', async (t) => {
  const { pullability, clock } = setup({ a1: 'a' });
  pullability.note(question, agent('a1'), refused);
  await clock.advance(2 * minute);
  pullability.noteUnknown(question, 'a');
  t.match(pullability.recall(question), { unable: ['a'], due: [] });
  await clock.advance(minute);
  t.match(pullability.recall(question), { unable: ['a'], due: ['a'] });
  await clock.advance(7 * minute);
  t.match(pullability.recall(question), { unable: [], missing: ['a'] });
});

t.test('an agent whose credentials have changed speaks for its old group no more', async (t) => {
  const { pullability, groupOf } = setup({ a1: 'a', a2: 'a', b1: 'b' });
  pullability.note(question, agent('a1'), refused);
  groupOf['a1'] = 'b';
  t.strictSame(pullability.recall(question), { able: [], unable: [], missing: ['b', 'a'], due: [] });
  groupOf['a1'] = unknownGroup;
  t.match(pullability.recall(question), { unable: ['a'] }, 'gone, it may have said so of the others');
});

t.test('agents without a fingerprint speak for nobody', async (t) => {
  const { pullability } = setup({ a1: 'a' });
  pullability.note(question, agent('x1'), refused);
  t.strictSame(pullability.recall(question), { able: [], unable: [], missing: ['a'], due: [] });
  t.equal(pullability.size, 0);
});

t.test('memory is bounded: the repository not used for longest is forgotten', async (t) => {
  const { pullability } = setup({ a1: 'a' }, 2);
  const [one, two, three] = ['one', 'two', 'three'].map((name) => questionOf(`registry.example/${name}:1`));
  if (!one || !two || !three) throw new Error('three questions');
  pullability.note(one, agent('a1'), good);
  pullability.note(two, agent('a1'), good);
  pullability.recall(one);
  pullability.note(three, agent('a1'), good);
  t.equal(pullability.size, 2);
  const known = (): readonly number[] =>
    [one, two, three].map((each) => pullability.recall(each).able.length);
  t.strictSame(known(), [1, 0, 1], 'one was asked for');
  pullability.note(one, agent('a1'), good);
  pullability.note(two, agent('a1'), good);
  t.strictSame(known(), [1, 1, 0], 'one was told again');
});

t.test('memory is bounded: of very many groups the last are remembered', async (t) => {
  const names = Array.from({ length: 65 }, (_, index) => `g${String(index).padStart(2, '0')}`);
  const { pullability } = setup(Object.fromEntries(names.map((name) => [name, name])));
  for (const name of names) pullability.note(question, agent(name), good);
  t.strictSame(pullability.recall(question).missing, ['g00']);
  t.equal(pullability.recall(question).able.length, 64);
});
