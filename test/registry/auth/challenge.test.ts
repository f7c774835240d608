import t from 'tap';
import * as fc from 'fast-check';
import { authSchemeOf, parseChallenges, validateRealm } from '../../../src/registry/auth/challenge.ts';
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
  t.throws(() => schemeOf('Bearer realm="http://auth.corp/token"'), { name: 'InvalidChallenge' });
  t.notOk('registryIp' in (authSchemeOf(request('app'), [bearer('')], undefined) ?? {}));
});

t.test('a realm may name any host, but not a local, private or metadata address', async (t) => {
  const cases: [realm: string, host: string, insecure: boolean, reason: RegExp | undefined][] = [
    ['https://auth.docker.io/token', 'registry-1.docker.io', false, undefined],
    ['https://8.8.8.8/token', 'registry.example.com', false, undefined],
    ['https://auth.another.test/token', 'registry.example.com', false, undefined],
    ['https://auth.example.com:8443/token?a=b', 'registry.example.com', false, undefined],
    ['http://auth.example.com/token', 'registry.example.com', true, undefined],
    ['http://auth.example.com/token', 'registry.example.com', false, /is http/],
    ['file:///etc/passwd', 'registry.example.com', true, /neither https nor http/],
    ['/token', 'registry.example.com', false, /not an absolute URL/],
    ['', 'registry.example.com', false, /not an absolute URL/],
    ['https://user@auth.example.com/', 'r', false, /^the realm holds a user name or password$/],
    ['https://:secret@auth.example.com/', 'r', false, /^the realm holds a user name or password$/],
    ['https://127.0.0.1/', 'a', false, /127\.0\.0\.1 is a loopback/],
    ['https://10.0.0.1/', '10.0.0.2', false, /private/],
    ['https://169.254.169.254/latest', 'registry.example.com', false, /metadata/],
    ['https://2130706433/', 'registry.example.com', false, /loopback/],
    ['https://localhost/token', 'registry.example.com', false, /this machine/],
    ['https://a.LOCALHOST./token', 'registry.example.com', false, /this machine/],
    ['https://metadata.google.internal/', 'registry.example.com', false, /metadata service/],
    ['https://metadata.example.com/', 'registry.example.com', false, undefined],
    ['http://127.0.0.1:5000/auth', '127.0.0.1:5000', true, undefined],
    ['http://127.0.0.1:8080/auth', '127.0.0.1:5000', true, /loopback/],
    ['https://10.0.0.1/auth', '10.0.0.1', false, undefined],
    ['https://10.0.0.1:443/auth', '10.0.0.1', false, undefined],
    ['https://10.0.0.1/auth', '10.0.0.1:443', false, undefined],
    ['https://10.0.0.1/auth', '10.0.0.1:5000', false, /private/],
    ['https://[::1]/auth', '[::1]:443', false, undefined],
    ['http://localhost:5000/auth', 'LOCALHOST:5000', true, undefined],
  ];
  for (const [realm, host, insecure, reason] of cases) {
    const url = new URL(`${insecure ? 'http' : 'https'}://${host}/v2/`);
    const validate = () => validateRealm(realm, url).href;
    if (reason === undefined) t.equal(validate(), new URL(realm).href, realm);
    else t.throws(validate, { name: 'InvalidChallenge', message: reason }, `${realm} from ${host}`);
  }
});

t.test('a realm may be in the same kind of network as the registry', async (t) => {
  const cases: [realm: string, ip: string, reason: RegExp | undefined][] = [
    ['https://127.0.0.1:5001/token', '127.0.0.1', undefined],
    ['https://localhost:5001/token', '::1', undefined],
    ['https://10.0.0.9/token', '10.0.0.1', undefined],
    ['https://127.0.0.1:5001/token', '10.0.0.1', /loopback/],
    ['https://10.0.0.9/token', '8.8.8.8', /private/],
    ['https://metadata.google.internal/token', '127.0.0.1', /metadata service/],
    ['http://127.0.0.1:5001/token', '127.0.0.1', /is http/],
  ];
  for (const [realm, ip, reason] of cases) {
    const validate = () => validateRealm(realm, new URL('https://registry.example.com/v2/'), ip);
    if (reason === undefined) t.doesNotThrow(validate, `${realm} from ${ip}`);
    else t.throws(validate, { message: reason }, `${realm} from ${ip}`);
  }
});
