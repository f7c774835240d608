import t from 'tap';
import { isLocalhost } from '../../../../daemon/containerd/endpoint.ts';
import { splitHostPort } from '../../../../src/names/host-port.ts';

t.test('localhost and loopback addresses are local', async (t) => {
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
});

t.test('host and port are split as in containerd', async (t) => {
  t.strictSame(splitHostPort('a:1'), { host: 'a', port: '1' });
  t.strictSame(splitHostPort('[::1]:1'), { host: '::1', port: '1' });
  t.strictSame(splitHostPort('a:'), { host: 'a', port: '' });
  for (const none of ['a', '::1', '[::1]', 'a:1:2', '[a:1', ''])
    t.equal(splitHostPort(none), undefined, none);
});
