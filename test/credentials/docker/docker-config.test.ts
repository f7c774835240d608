import t from 'tap';
import { assert, property, uint8Array } from 'fast-check';
import {
  decodeBase64,
  DockerConfigError,
  namesField,
  parseDockerConfig,
  parseDockerConfigEntry,
  type DockerConfigFormat,
} from '../../../src/credentials/docker/docker-config.ts';
import { reveal } from '../../../src/telemetry/secret.ts';

/** Entries as `user:password`, by key. */
function read(text: string | Uint8Array, format: DockerConfigFormat = 'config.json'): Record<string, string> {
  const entries = parseDockerConfig(typeof text === 'string' ? Buffer.from(text) : text, format);
  return Object.fromEntries([...entries].map(([key, e]) => [key, `${e.username}:${reveal(e.password)}`]));
}

const good: [string, string, Record<string, string>][] = [
  ['an entry', '{"auths":{"a":{"username":"u","password":"p"}}}', { a: 'u:p' }],
  ['auth', '{"auths":{"a":{"auth":"dTpw"}}}', { a: 'u:p' }],
  [
    'auth takes precedence over user name and password',
    '{"auths":{"a":{"auth":"dTpw","username":"x","password":"y"}}}',
    { a: 'u:p' },
  ],
  ['an empty auth is ignored', '{"auths":{"a":{"username":"u","password":"p","auth":""}}}', { a: 'u:p' }],
  ['only the first colon splits', `{"auths":{"a":{"auth":"${btoa('u:p:q')}"}}}`, { a: 'u:p:q' }],
  ['an empty user name', `{"auths":{"a":{"auth":"${btoa(':p')}"}}}`, { a: ':p' }],
  ['an empty password', `{"auths":{"a":{"auth":"${btoa('u:')}"}}}`, { a: 'u:' }],
  ['NUL bytes stay', `{"auths":{"a":{"auth":"${btoa('u:p\0\0')}"}}}`, { a: 'u:p\0\0' }],
  ['an empty entry is a credential', '{"auths":{"a":{}}}', { a: ':' }],
  ['a null entry is a credential', '{"auths":{"a":null}}', { a: ':' }],
  ['tokens do not count', '{"auths":{"a":{"identitytoken":"t","registrytoken":"r"}}}', { a: ':' }],
  ['names in any case', '{"AUTHS":{"a":{"Username":"u","PASSWORD":"p"}}}', { a: 'u:p' }],
  ['keys keep their case', '{"auths":{"A":{},"a":{}}}', { A: ':', a: ':' }],
  ['the last duplicate key wins whole', '{"auths":{"a":{"username":"u"},"a":{"password":"p"}}}', { a: ':p' }],
  ['the last duplicate field wins', '{"auths":{"a":{"username":"x","USERNAME":"u"}}}', { a: 'u:' }],
  ['null leaves a field as it is', '{"auths":{"a":{"username":"u","username":null}}}', { a: 'u:' }],
  [
    'a second auths adds entries',
    '{"auths":{"a":{},"b":{}},"auths":{"b":{"username":"u"}}}',
    { a: ':', b: 'u:' },
  ],
  ['a null auths removes all entries', '{"auths":{"a":{}},"auths":null}', {}],
  ['no auths', '{"credsStore":"desktop","credHelpers":{"a":"b"}}', {}],
  ['null', 'null', {}],
  ['white space around', ' \r\n{"auths":{}}\t', {}],
  ['headers of the right shape', '{"HttpHeaders":{"a":"b","c":null},"auths":{"a":{}}}', { a: ':' }],
  ['unknown members of any shape', '{"x":[{"auths":1}],"auths":{"a":{"x":{"auth":1}}}}', { a: ':' }],
  ['a key called __proto__', '{"auths":{"__proto__":{"username":"u"}}}', { ['__proto__']: 'u:' }],
];

t.test('config.json is read as by the kubelet', async (t) => {
  for (const [name, text, expected] of good)
    t.strictSame(Object.entries(read(text)), Object.entries(expected), name);
});

const bad: [string, string, string][] = [
  ['nothing', '', 'is not valid JSON'],
  ['trailing garbage', '{"auths":{}}x', 'is not valid JSON'],
  ['a byte order mark', '\u{feff}{"auths":{}}', 'is not valid JSON'],
  ['a list', '[]', 'the document is not an object'],
  ['auths that is a list', '{"auths":[]}', 'auths is not an object'],
  ['an entry that is text', '{"auths":{"a":"b"}}', 'entry a is not an object'],
  ['a user name that is a number', '{"auths":{"a":{"username":1}}}', 'entry a: username is not a string'],
  ['an email that is false', '{"auths":{"a":{"email":false}}}', 'entry a: email is not a string'],
  [
    'a wrong field behind good ones',
    '{"auths":{"b":{"auth":"dTpw"},"a":{"auth":{}}}}',
    'entry a: auth is not a string',
  ],
  [
    'auth without a colon',
    `{"auths":{"a":{"auth":"${btoa('up')}"}}}`,
    'entry a: auth: unable to parse auth field, must be formatted as base64(username:password)',
  ],
  ['auth that is not base64', '{"auths":{"a":{"auth":"pants"}}}', 'entry a: auth: illegal base64 data'],
  ['headers of the wrong shape', '{"HttpHeaders":{"a":1}}', 'HttpHeaders: a value is not a string'],
  ['too deep', `{"x":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, 'is nested too deeply'],
];

t.test('one malformed part rejects the whole config.json', async (t) => {
  for (const [name, text, message] of bad)
    t.throws(() => read(text), { name: 'DockerConfigError', message }, name);
});

t.test('an error quotes neither a password nor the user info of a key', async (t) => {
  const text = '{"auths":{"https://me:hunter22@gcr.io":{"password":["hunter22"]}}}';
  t.throws(() => read(text), { message: 'entry gcr.io: password is not a string' });
  t.throws(() => read('{"auths":{"gcr.io:*hunter22":{"auth":1}}}'), {
    message: 'entry (not a registry): auth is not a string',
  });
});

t.test('.dockercfg is the map itself', async (t) => {
  t.strictSame(read('{"a":{"username":"u","password":"p"}}', 'dockercfg'), { a: 'u:p' });
  t.strictSame(read('{"auths":{"a":{"auth":"x"}}}', 'dockercfg'), { auths: ':' });
  t.strictSame(read('null', 'dockercfg'), {});
  t.throws(() => read('{"a":1}', 'dockercfg'), DockerConfigError);
});

t.test('invalid UTF-8 is replaced inside strings and rejected elsewhere', async (t) => {
  const latin = Buffer.from('{"auths":{"a":{"username":"\xe9"}}}', 'latin1');
  t.strictSame(read(latin), { a: '\ufffd:' });
  t.throws(() => read(Buffer.from([0x7b, 0xff, 0x7d])), DockerConfigError);
});

t.test('an entry prints without its password', async (t) => {
  const entry = parseDockerConfigEntry('{"username":"u","password":"hunter22"}', 'it');
  t.equal(JSON.stringify(entry), '{"username":"u","password":"[secret]"}');
});

t.test('field names match in any case', async (t) => {
  for (const name of ['auths', 'AUTHS', 'Auths', 'auth\u017f']) t.ok(namesField(name, 'auths'), name);
  t.ok(namesField('\u212aey', 'key'));
  for (const name of ['auth', 'auths ', 'author', 'auth\u00df']) t.notOk(namesField(name, 'auths'), name);
});

const decoded: [string, 'padded' | 'unpadded', string][] = [
  ['\r\n', 'padded', ''],
  ['Y\nQ\r=\n=\r\n', 'padded', 'a'],
  ['Y\nQ\n', 'unpadded', 'a'],
  ['YR==', 'padded', 'a'],
];

/** As refused by Go 1.26. */
const refused: [string, 'padded' | 'unpadded'][] = [
  ['====', 'padded'],
  ['Y===', 'padded'],
  ['YQ=', 'padded'],
  ['YQ=a', 'padded'],
  ['YQ==a', 'padded'],
  ['YWI==', 'padded'],
  ['YWI=\n\nY', 'padded'],
  ['YQ', 'padded'],
  ['Y', 'unpadded'],
  ['YWJjY', 'unpadded'],
  ['YQ==', 'unpadded'],
  ['YQ== ', 'padded'],
  [' YQ==', 'padded'],
  ['Pz8-Pz8_', 'padded'],
  ['YéQ=', 'padded'],
];

t.test('base64 is read as in Go', async (t) => {
  for (const [text, padding, expected] of decoded)
    t.equal(decodeBase64(text, padding).toString(), expected, JSON.stringify([text, padding]));
  for (const [text, padding] of refused)
    t.throws(
      () => decodeBase64(text, padding),
      { message: 'illegal base64 data' },
      JSON.stringify([text, padding]),
    );
});

t.test('property: decoding reverses encoding', async () => {
  assert(
    property(uint8Array(), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      return (
        decodeBase64(text, 'padded').equals(bytes) &&
        decodeBase64(text.replace(/=+$/, ''), 'unpadded').equals(bytes)
      );
    }),
  );
});
