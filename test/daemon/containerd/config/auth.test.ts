import t from 'tap';
import { parseAuth } from '../../../../daemon/containerd/config/registry.ts';
import { reveal, secret } from '../../../../src/telemetry/secret.ts';

const base64 = (text: string) => secret(Buffer.from(text).toString('base64'));
const shown = (auth: Parameters<typeof parseAuth>[0], host = 'h') => {
  const found = parseAuth(auth, host);
  return found && [found.username, reveal(found.password)];
};

t.test('precedence', async (t) => {
  const all = { username: 'u', password: secret('p'), auth: base64('a:b'), identityToken: secret('i') };
  t.same(shown(all), ['u', 'p']);
  t.same(shown({ ...all, username: '' }), ['', 'i'], 'a password without a user name is nothing');
  t.same(shown({ ...all, username: '', identityToken: undefined }), ['a', 'b']);
  t.same(shown({ username: 'u' }), ['u', '']);
  t.same(shown({ password: secret('p') }), undefined);
  t.same(shown({}), undefined);
  t.same(shown({ auth: base64('a:b:c\0\0') }), ['a', 'b:c']);
});

t.test('for one server only', async (t) => {
  const auth = { username: 'u', password: secret('p'), serverAddress: 'https://a.example/v2/' };
  t.same(shown(auth, 'a.example'), ['u', 'p']);
  t.same(shown(auth, 'b.example'), undefined);
  t.same(
    shown({ ...auth, serverAddress: 'a.example' }, 'a.example'),
    undefined,
    'a host without a scheme is not a URL',
  );
  t.throws(() => shown({ ...auth, serverAddress: 'https://%zz' }), { code: 'invalid' });
});

t.test('invalid auth', async (t) => {
  for (const auth of ['dTpw=', 'a b', 'dTp', Buffer.from('nocolon').toString('base64')]) {
    t.throws(() => parseAuth({ auth: secret(auth) }, 'h'), { name: 'InvalidConfig' }, auth);
  }
});
