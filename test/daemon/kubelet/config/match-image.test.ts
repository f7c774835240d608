import * as fc from 'fast-check';
import t from 'tap';
import { splitHostPath } from '../../../../src/credentials/keyring/key.ts';
import { matchImageProblem } from '../../../../daemon/kubelet/config/validate-config.ts';

t.test('errors in patterns, in the words of Go', async (t) => {
  const cases: [string, string | undefined][] = [
    ['registry.io/*', undefined],
    ['', undefined],
    ['%invalid%', 'parse "https://%invalid%": invalid URL escape "%in"'],
    ['a%', 'parse "https://a%": invalid URL escape "%"'],
    ['a%41', 'parse "https://a%41": invalid URL escape "%41"'],
    ['a/%zz', 'parse "https://a/%zz": invalid URL escape "%zz"'],
    ['a:b', 'parse "https://a:b": invalid port ":b" after host'],
    ['gcr.io:*', 'parse "https://gcr.io:*": invalid port ":*" after host'],
    ['a b', 'parse "https://a b": invalid character " " in host name'],
    ['a\\b', String.raw`parse "https://a\\b": invalid character "\\" in host name`],
    ['[::1', `parse "https://[::1": missing ']' in host`],
    ['[::1]x', 'parse "https://[::1]x": invalid port "x" after host'],
    ['a\nb', String.raw`parse "https://a\nb": net/url: invalid control character in URL`],
    ['a^b@c', 'parse "https://a^b@c": net/url: invalid userinfo'],
    ['a#%zz', 'parse "https://a#%zz": invalid URL escape "%zz"'],
  ];
  for (const [text, problem] of cases) t.equal(matchImageProblem(text), problem, text);
});

t.test('property: a pattern has a problem if and only if it cannot be parsed', async (t) => {
  const letters = fc.constantFrom(
    'a',
    '.',
    '*',
    ':',
    '5',
    '/',
    '%',
    '2',
    '[',
    ']',
    '@',
    '#',
    '?',
    ' ',
    '\\',
    '^',
    'é',
    '\n',
  );
  fc.assert(
    fc.property(fc.string({ unit: letters, maxLength: 12 }), (text) => {
      const problem = matchImageProblem(text);
      t.equal(problem === undefined, splitHostPath(text) !== undefined, text);
      if (problem !== undefined) t.match(problem, /^parse "https:\/\/.*": (?!invalid URL$)/);
    }),
    { numRuns: 1000 },
  );
});
