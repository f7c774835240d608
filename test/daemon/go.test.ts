import t from 'tap';
import { parseGoDuration, cleanPath, parseGoUrl } from '../../daemon/go.ts';

t.test('Go durations are parsed', async (t) => {
  const cases: [string, number | undefined][] = [
    ['0', 0],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['.5s', 500],
    ['1.s', 1000],
    ['100ms', 100],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['1μs', 0.001],
    ['1ns', 0.000_001],
    ['-1m', -60_000],
    ['+5s', 5000],
    ['2562047h', 9_223_369_200_000],
    ['', undefined],
    ['10', undefined],
    ['.s', undefined],
    ['1d', undefined],
    ['1m-1s', undefined],
    ['1e3s', undefined],
    ['2562048h', undefined],
  ];
  for (const [text, expected] of cases) t.equal(parseGoDuration(text), expected, text);
});

t.test('a long malformed duration is refused in linear time', async (t) => {
  // Found by fuzzing: each amount of two digits doubled the time.
  t.equal(parseGoDuration(`-${'03m'.repeat(1000)}03`), undefined);
});

t.test('URLs are parsed as in Go', async (t) => {
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
  for (const [text, url] of cases) t.strictSame(parseGoUrl(text), url, text);
});

t.test('paths are cleaned as in Go', async (t) => {
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
