import { array, assert, constantFrom, property } from 'fast-check';
import t from 'tap';
import { matches, parsePattern } from '../../../src/credentials/keyring/match.ts';

function match(pattern: string, repository: string): boolean {
  const parsed = parsePattern(pattern);
  const asked = parsePattern(repository);
  return parsed !== undefined && asked !== undefined && matches(parsed, asked);
}

const yes: [string, string][] = [
  ['gcr.io', 'gcr.io/foo'],
  ['gcr.io:', 'gcr.io/foo'],
  ['gcr.io:443', 'gcr.io:443/foo'],
  ['*.gcr.io', 'eu.gcr.io/foo'],
  ['*', 'localhost/foo'],
  ['*.*', 'gcr.io/foo'],
  ['g*r.*o', 'gcr.io/foo'],
  ['gcr*.io', 'gcr.io/foo'],
  ['**r.io', 'gcr.io/foo'],
  ['*c*r.io', 'gccr.io/foo'],
  ['gcr.io/foo', 'gcr.io/foobar'],
  ['gcr.io/', 'gcr.io/foo'],
  ['gcr.io/foo/', 'gcr.io/foo/bar'],
  ['[::1]:5000', '[::1]:5000/foo'],
  ['127.0.0.1:5000/a', '127.0.0.1:5000/a/b'],
  ['*.dkr.ecr.*.amazonaws.com', '1234.dkr.ecr.eu-west-1.amazonaws.com/app'],
];
const no: [string, string][] = [
  ['gcr.io', 'gcr.io:443/foo'],
  ['gcr.io:443', 'gcr.io/foo'],
  ['gcr.io:80', 'gcr.io:8080/foo'],
  ['GCR.io', 'gcr.io/foo'],
  ['*.io', 'eu.gcr.io/foo'],
  ['*', 'gcr.io/foo'],
  ['*.gcr.io', 'gcr.io/foo'],
  ['gcr', 'gcr.io/foo'],
  ['*x.io', 'gcr.io/foo'],
  ['g*.io', 'quay.io/foo'],
  ['gcr.io*x', 'gcr.io/foo'],
  ['gcr.io/foo/', 'gcr.io/foo'],
  ['gcr.io/Foo', 'gcr.io/foo'],
  ['gcr.io/*/bar', 'gcr.io/foo/bar'],
  ['[::1]', '[::1]/foo'],
  ['[::A]', 'A/foo'],
  ['https://gcr.io', 'gcr.io/foo'],
  ['gcr.io%zz', 'gcr.io/foo'],
  ['gcr..io', 'gcr.io/foo'],
  ['', 'gcr.io/foo'],
  ['registry.io', 'r.io/foo'],
  ['r.io', 'registry-1.docker.io/foo'],
];

for (const [pattern, repository] of yes) {
  t.test(`${pattern} matches ${repository}`, async (t) => void t.ok(match(pattern, repository)));
}
for (const [pattern, repository] of no) {
  t.test(`${pattern} does not match ${repository}`, async (t) => void t.notOk(match(pattern, repository)));
}

t.test('a star is any text inside one label, like the equivalent regular expression', async () => {
  const letters = (...of: string[]) =>
    array(constantFrom(...of), { maxLength: 8 }).map((all) => all.join(''));
  assert(
    property(letters('a', 'b', '*'), letters('a', 'b'), (pattern, label) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(label);
      return match(`${pattern}.io`, `${label}.io/x`) === expected;
    }),
    { numRuns: 1000 },
  );
});

t.test('many stars do not hang', async (t) => {
  t.notOk(match(`${'*a'.repeat(2000)}b.io`, `${'a'.repeat(4000)}.io/x`));
});
