import t from 'tap';
import { cleanPath, parseGoUrl } from '../../../../daemon/containerd/hosts/go-url.ts';
import { isLocalhost, matchLocalhost, splitHostPort } from '../../../../daemon/containerd/hosts/localhost.ts';

t.test('this machine', async (t) => {
  const local = [
    'localhost',
    'localhost:5000',
    '127.0.0.1',
    '127.9.9.9:1',
    '::1',
    '[::1]:5000',
    '[::ffff:127.0.0.1]:1',
  ];
  const other = [
    '',
    '[::1]',
    'foo.localhost',
    '0.0.0.0',
    '10.0.0.1',
    '127.0.0.1.example',
    '2130706433',
    '0x7f.1',
    '[64:ff9b::7f00:1]:1',
  ];
  for (const host of local) t.equal(isLocalhost(host), true, host);
  for (const host of other) t.equal(isLocalhost(host), false, host);
  t.equal(matchLocalhost('[::1]'), true);
  t.equal(matchLocalhost('127.0.0.1:'), false);
});

t.test('host and port', async (t) => {
  t.same(splitHostPort('a:1'), { host: 'a', port: '1' });
  t.same(splitHostPort('[::1]:1'), { host: '::1', port: '1' });
  t.same(splitHostPort('a:'), { host: 'a', port: '' });
  for (const none of ['a', '::1', '[::1]', 'a:1:2', '[a:1', ''])
    t.equal(splitHostPort(none), undefined, none);
});

t.test('URLs as Go reads them', async (t) => {
  const cases: [string, ReturnType<typeof parseGoUrl>][] = [
    ['HTTPS://A.example/x', { scheme: 'https', host: 'A.example', path: '/x' }],
    ['https://a:b@h:1/%41?q#f', { scheme: 'https', host: 'h:1', path: '/A' }],
    ['https:///x', { scheme: 'https', host: '', path: '/x' }],
    ['https:x', { scheme: 'https', host: '', path: '' }],
    ['a.b:5000/x', { scheme: 'a.b', host: '', path: '' }],
    ['a/b', { scheme: '', host: '', path: 'a/b' }],
    ['//h/x', { scheme: '', host: 'h', path: '/x' }],
    ['1a:b/c', undefined],
    [':x', undefined],
    ['https://h:port', undefined],
    ['https://h/%zz', undefined],
    ['https://h\n', undefined],
    ['https://[::1', undefined],
  ];
  for (const [text, url] of cases) t.same(parseGoUrl(text), url, text);
});

t.test('clean paths', async (t) => {
  const cases = {
    '/a/../b//c/.': '/b/c',
    '/../..': '/',
    'a/../../b': '../b',
    '': '.',
    'a/..': '.',
    '/': '/',
  };
  for (const [path, clean] of Object.entries(cases)) t.equal(cleanPath(path), clean, path);
});
