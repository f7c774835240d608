import t from 'tap';
import { cleanPath, parseGoUrl } from '../../../daemon/go.ts';

t.test('URLs as Go parses them', async (t) => {
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
