import t from 'tap';
import * as fc from 'fast-check';
import { authSchemeOf, parseChallenges } from '../../../src/registry/auth/challenge.ts';
import { like } from '../../support/like.ts';
import { withUserMs } from '../../support/cpu-time.ts';

const parse = (...lines: string[]): string[] =>
  parseChallenges(lines).map(({ scheme, parameters }) =>
    [scheme, ...[...parameters].map(([name, value]) => `${name}=<${value}>`)].join(' '),
  );

t.test('challenges are parsed as containerd does', async (t) => {
  const cases: [name: string, lines: string[], expected: string[]][] = [
    [
      'Docker Hub',
      [
        'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"',
      ],
      [
        'bearer realm=<https://auth.docker.io/token> service=<registry.docker.io> scope=<repository:a/b:pull,push>',
      ],
    ],
    ['blanks after commas', ['Bearer realm="r" ,\t service="s"'], ['bearer realm=<r> service=<s>']],
    ['no parameters', ['BASIC'], ['basic']],
    ['tokens and escapes', [String.raw`Basic a=b,c="d\"e\\f\g"`], [String.raw`basic a=<b> c=<d"e\fg>`]],
    ['empty value is kept', ['Bearer realm="",service="s"'], ['bearer realm=<> service=<s>']],
    ['names in any case, the last one wins', ['Bearer Realm=a,REALM=b'], ['bearer realm=<b>']],
    ['one line, one challenge', ['Basic realm="a", Bearer realm="b"'], ['basic realm=<a>']],
    [
      'best scheme first',
      ['Basic', 'Digest', 'Bearer', 'Basic a=1'],
      ['bearer', 'digest', 'basic', 'basic a=<1>'],
    ],
    ['unknown schemes', ['Negotiate', 'NTLM x', 'Bearer2 realm=a', 'Basic'], ['basic']],
    ['nothing', ['', ' Basic', '=', '"Basic"'], []],
    ['no lines', [], []],
    [
      'a quoted string without end',
      ['Bearer realm="https://a/token, service="s"'],
      ['bearer realm=<https://a/token, service=>'],
    ],
    ['no end at all', ['Bearer service=s,realm="https://a/token'], ['bearer service=<s> realm=<>']],
    ['no end after an escape', [String.raw`Bearer realm="a\"`], ['bearer realm=<>']],
    [
      'an unquoted URL ends at its colon',
      ['Bearer realm=https://a/token,service=s'],
      ['bearer realm=<https>'],
    ],
    ['blanks around = end the line', ['Bearer realm = "a"'], ['bearer']],
    ['a blank value', ['Bearer realm= "a"'], ['bearer realm=<>']],
    ['a parameter without a name', ['Bearer ="a",realm=b'], ['bearer']],
    ['semicolons', ['Bearer realm="a";service="s"'], ['bearer realm=<a>']],
    ['bytes above ASCII', ['Bearer réalm="a"', 'Basic realm="ä"'], ['bearer', 'basic realm=<ä>']],
    ['__proto__', ['Bearer __proto__="a",constructor="b"'], ['bearer __proto__=<a> constructor=<b>']],
  ];
  for (const [name, lines, expected] of cases) t.strictSame(parse(...lines), expected, name);
});

t.test('property: parameters of a well-formed challenge are read unchanged', async (t) => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/)),
      fc.string({ maxLength: 30 }),
      (names, value) => {
        const quoted = `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
        const [challenge] = parseChallenges([
          `Bearer ${names.map((name) => `${name}=${quoted}`).join(', ')}`,
        ]);
        t.strictSame(
          Object.fromEntries(challenge?.parameters ?? []),
          Object.fromEntries(names.map((name) => [name, value])),
        );
      },
    ),
    { numRuns: 200 },
  );
});

t.test('a long line is parsed in linear time', async (t) => {
  for (const piece of ['a=b,', 'a="b",', '\\', '"', ' ', 'a', '\\"', ',']) {
    const line = `Bearer ${piece.repeat(200_000 / piece.length)}`;
    const [, ms] = await withUserMs(() => parseChallenges([line, `Bearer a="${line}`]));
    t.ok(ms < 1000, `${JSON.stringify(piece)} took ${ms} ms`);
  }
});

const request = (repository: string) => ({
  url: new URL(`https://registry.corp/v2/${repository}/manifests/v1`),
  repository,
});
const bearer = (scope: string) => `Bearer realm="https://auth.corp/token",service="s"${scope}`;

t.test('the best supported challenge is chosen', async (t) => {
  const schemeOf = (...lines: string[]) => authSchemeOf(request('app'), lines, '203.0.113.7');
  t.equal(schemeOf(), undefined);
  t.equal(schemeOf('Digest realm="x"', 'Negotiate'), undefined);
  t.strictSame(schemeOf('Basic realm="x"', 'Digest realm="x"'), { scheme: 'basic' });
  // tap takes any two URLs for the same.
  t.strictSame(JSON.parse(JSON.stringify(schemeOf('Basic realm="x"', bearer('')))), {
    scheme: 'bearer',
    realm: 'https://auth.corp/token',
    service: 's',
    scopes: ['repository:app:pull'],
    registryIp: '203.0.113.7',
  });
  like(t, schemeOf(bearer(',scope="b repository:app:pull a repository:app:pull,push b"')), {
    scopes: ['a', 'b', 'repository:app:pull', 'repository:app:pull,push'],
  });
  like(t, schemeOf(bearer(',scope=""')), { scopes: ['repository:app:pull'] });
  like(t, schemeOf('Bearer realm="https://auth.corp"'), { service: '' });
  t.throws(() => schemeOf('Bearer service="s"'), { message: 'the Bearer challenge names no realm' });
  t.throws(() => schemeOf('Bearer realm="https://10.0.0.1/token"'), { name: 'InvalidChallenge' });
  t.throws(() => schemeOf('Bearer realm="http://auth.corp/token"'), { name: 'InvalidChallenge' });
  t.notOk('registryIp' in (authSchemeOf(request('app'), [bearer('')], undefined) ?? {}));
});
