import t from 'tap';
import { didYouMean, suggestionFor } from '../../src/names/suggestion.ts';
import { settings } from '../../src/policy/settings/all.ts';

t.test('the nearest setting is suggested', async (t) => {
  const cases: [string, string | undefined][] = [
    ['schedulableArchitekture', 'schedulableArchitectures'],
    ['schedulablearchitectures', 'schedulableArchitectures'],
    ['inlineBugdet', 'inlineBudget'],
    ['listn', 'listen'],
    ['lsiten', 'listen'],
    ['prefered', 'preferredArchitecture'],
    ['agent', 'agents'],
    ['logLevel', 'logLevel'],
    ['somethingElse', undefined],
    ['age', 'agents'],
    ['ag', undefined],
    ['x', undefined],
    ['', undefined],
  ];
  for (const [word, expected] of cases) t.equal(suggestionFor(word, Object.keys(settings)), expected, word);
});

t.test('two letters may be swapped, unless the word is short', async (t) => {
  t.equal(suggestionFor('abdc', ['ab', 'abcd']), 'abcd');
  t.equal(suggestionFor('ba', ['ab']), undefined);
  t.equal(suggestionFor('badc', ['abcd']), undefined, 'two swaps');
});

t.test('the nearer candidate wins in any order', async (t) => {
  t.equal(suggestionFor('proxis', ['proxied', 'proxies']), 'proxies');
  t.equal(suggestionFor('proxis', ['proxies', 'proxied']), 'proxies');
});

t.test('a suggestion is formatted as the end of a message', async (t) => {
  t.equal(didYouMean('chekc', ['check', 'print']), '; did you mean check?');
  t.equal(didYouMean('other', ['check', 'print']), '');
});

t.test('a very long word is skipped', async (t) => {
  // Found by fuzzing: the time grew with the length of the word and the number of candidates.
  t.equal(suggestionFor(`listen${'n'.repeat(1_000_000)}`, ['listen', 'logLevel']), undefined);
});
