import t from 'tap';
import { describeStderr } from '../../../../daemon/kubelet/run/run.ts';
import { secret } from '../../../../src/telemetry/secret.ts';

t.test('one line of printable text', async (t) => {
  const cases: [string, string][] = [
    ['', ''],
    ['  no region\n\n', 'no region'],
    ['a\r\nb\tc\0d', 'a b c d'],
    ['\u001b[31mred\u001b[0m \u001b]0;title\u0007', 'red ]0;title'],
    ['grüße 日本 ✓', 'grüße 日本 ✓'],
    ['\u202eright to left\u2028', 'right to left'],
  ];
  for (const [written, expected] of cases) t.equal(describeStderr(Buffer.from(written)), expected);
  t.equal(describeStderr(Buffer.from([0x61, 0xff, 0x62])), 'a\ufffdb');
  t.equal(describeStderr(Buffer.from('word '.repeat(1000))).length, 1001);
});

t.test('texts that look like credentials are removed', async (t) => {
  secret('known to us');
  const cases: [string, string][] = [
    ['it is known to us', 'it is [secret]'],
    ['password=hunter2 wrong', 'password=[secret] wrong'],
    ['{"username":"u","password":"hunter 2","x":1}', '{"username":"u","password":[secret],"x":1}'],
    ["db_password: 'hunter2'", 'db_password: [secret]'],
    ['client-secret=hunter2&x', 'client-secret=[secret]'],
    ['AWS_SECRET_ACCESS_KEY = hunter2', 'AWS_SECRET_ACCESS_KEY = [secret]'],
    ['Authorization: Basic dTpw', 'Authorization: [secret]'],
    ['sent Bearer abc.def', 'sent [secret]'],
    ['GET https://user:hunter2@host/x', 'GET https://[secret]host/x'],
    ['token eyJhbGciOi.eyJzdWIi.c2ln ended', 'token [secret] ended'],
    ['key AbCdEfGhIjKlMnOpQr1234 ended', 'key [secret] ended'],
    [
      'open /usr/libexec/kubernetes/kubelet-plugins/x86-64/a: no such file',
      'open /usr/libexec/kubernetes/kubelet-plugins/x86-64/a: no such file',
    ],
    ['dial tcp 169.254.169.254:80: i/o timeout', 'dial tcp 169.254.169.254:80: i/o timeout'],
  ];
  for (const [written, expected] of cases) t.equal(describeStderr(Buffer.from(written)), expected, written);
});
