import t from 'tap';
import { credentialIn, parseAuthFile } from '../../../daemon/crio/auth-file.ts';
import { DockerConfigError, type DockerConfigFormat } from '../../../src/credentials/docker/docker-config.ts';
import { Base64Error } from '../../../src/credentials/docker/go-encoding.ts';
import { reveal } from '../../../src/telemetry/secret.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

function read(document: unknown, format: DockerConfigFormat = 'config.json') {
  return parseAuthFile(Buffer.from(JSON.stringify(document)), format);
}

/** Entries whose user is their key. */
const withUsers = (...keys: readonly string[]) => ({
  auths: Object.fromEntries(keys.map((key) => [key, { auth: base64(`${key.replaceAll(':', '_')}:p`) }])),
});

t.test('which key serves a repository', async (t) => {
  const cases: readonly {
    readonly repository: string;
    readonly keys: readonly string[];
    readonly found?: string;
    readonly format?: DockerConfigFormat;
  }[] = [
    { repository: 'a.test/x/y', keys: ['a.test', 'a.test/x'], found: 'a.test/x' },
    { repository: 'a.test/xy', keys: ['a.test/x'] },
    { repository: 'a.test/x', keys: ['a.test:443'] },
    { repository: 'a.test:5000/x', keys: ['a.test', 'a.test:5000'], found: 'a.test:5000' },
    { repository: 'a.test/x', keys: ['*.test', 'A.test', 'a.test/'] },
    { repository: 'a.test/x', keys: ['https://a.test/v2/other'], found: 'https://a.test/v2/other' },
    { repository: 'a.test/x', keys: ['HTTPS://a.test'] },
    { repository: 'a.test/x', keys: ['a.test/v1/'] },
    {
      repository: 'docker.io/library/x',
      keys: ['https://index.docker.io/v1/', 'docker.io'],
      found: 'docker.io',
    },
    { repository: 'docker.io/a/b', keys: ['registry-1.docker.io'], found: 'registry-1.docker.io' },
    { repository: 'docker.io/library/x', keys: ['docker.io/library'], found: 'docker.io/library' },
  ];
  for (const { repository, keys, found } of cases) {
    const entry = credentialIn(read(withUsers(...keys)), repository);
    t.equal(entry?.key, found, `${repository} in ${keys.join(', ')}`);
  }
});

t.test('.dockercfg has hosts only', async (t) => {
  const file = read(withUsers('a.test/x', 'https://b.test/v1').auths, 'dockercfg');
  t.equal(credentialIn(file, 'b.test/x')?.key, 'https://b.test/v1');
  t.equal(credentialIn(file, 'a.test/x')?.key, 'a.test/x', 'a path is cut');
});

t.test('the credential of an entry', async (t) => {
  const credential = (entry: object) => {
    const found = credentialIn(read({ auths: { 'a.test': entry } }), 'a.test/x');
    return found && { ...found.credential, password: reveal(found.credential.password) };
  };
  t.strictSame(credential({ auth: base64('u:p:q') }), { username: 'u', password: 'p:q' });
  t.strictSame(credential({ auth: base64('u:\0p\0\0') }), { username: 'u', password: 'p' });
  t.strictSame(credential({ auth: base64(':p') }), { username: '', password: 'p' });
  t.strictSame(credential({ AUTH: base64('u:p') }), { username: 'u', password: 'p' });
  t.strictSame(credential({ auth: base64('u:'), identitytoken: 'token' }), {
    username: '',
    password: 'token',
    isIdentityToken: true,
  });
  const none = [
    {},
    { username: 'u', password: 'p' },
    { auth: base64('no colon') },
    { auth: base64(':') },
    { identitytoken: 'token' },
  ];
  for (const entry of none) t.equal(credential(entry), undefined, JSON.stringify(entry));
  t.throws(() => credential({ auth: base64('foo:bar').replaceAll('=', '') }), Base64Error, 'unpadded');
});

t.test('documents as Go reads them', async (t) => {
  const parse = (text: string) => parseAuthFile(Buffer.from(text), 'config.json');
  t.equal(parse('{"auths":null,"credsStore":1}').entries.size, 0);
  t.strictSame([...parse('{"credHelpers":{"a.test":"h"}}').helpers], [['a.test', 'h']]);
  t.strictSame([...parse('{"auths":{"a":{}},"Auths":{"b":null}}').entries.keys()], ['a', 'b']);
  for (const text of ['', 'x', '[]', '{"auths":[]}', '{"auths":{"a":{"auth":1}}}', '{"credHelpers":{"a":1}}'])
    t.throws(() => parse(text), DockerConfigError, text);
});
