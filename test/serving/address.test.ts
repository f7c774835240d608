import { test } from 'tap';
import { parseListenAddress, urlOf } from '../../src/serving/address.ts';

const good: readonly [text: string, host: string | undefined, port: number, url: string][] = [
  ['127.0.0.1:8443', '127.0.0.1', 8443, 'https://127.0.0.1:8443'],
  ['localhost:0', 'localhost', 0, 'https://localhost:0'],
  [':8443', undefined, 8443, 'https://127.0.0.1:8443'],
  ['0.0.0.0:1', '0.0.0.0', 1, 'https://127.0.0.1:1'],
  ['[::1]:65535', '::1', 65535, 'https://[::1]:65535'],
  ['[::]:80', '::', 80, 'https://[::1]:80'],
  // The chart does not know if the pod's address is IPv4 or IPv6.
  ['[10.0.0.1]:80', '10.0.0.1', 80, 'https://10.0.0.1:80'],
];

for (const [text, host, port, url] of good) {
  test(`listens on ${text}`, async (t) => {
    t.strictSame(parseListenAddress(text), { host, port });
    t.equal(urlOf('https', host, port), url);
  });
}

for (const text of [
  '',
  '8443',
  'host',
  'host:',
  '::1:8443',
  '[::1]',
  '[host]:1',
  'host:65536',
  'host:-1',
  'a b:1',
  'http://a:1',
]) {
  test(`refuses "${text}"`, async (t) => {
    t.throws(() => parseListenAddress(text), {
      name: 'ServingError',
      message: /^".*" is not an address to listen on/,
    });
  });
}
