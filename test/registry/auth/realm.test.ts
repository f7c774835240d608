import t from 'tap';
import { validateRealm } from '../../../src/registry/auth/challenge.ts';

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
    ['mailto:a@b', 'registry.example.com', false, /neither https nor http/],
    ['https://user@auth.example.com/', 'registry.example.com', false, /user name or password/],
    ['https://:secret@auth.example.com/', 'registry.example.com', false, /user name or password/],
    ['https://127.0.0.1/', 'a', false, /127\.0\.0\.1 is a loopback/],
    ['https://[::]/', 'a', false, /unspecified/],
    ['https://10.0.0.1/', '10.0.0.2', false, /private/],
    ['https://169.254.169.254/latest', 'registry.example.com', false, /metadata/],
    ['https://2130706433/', 'registry.example.com', false, /loopback/],
    ['https://①②⑦.0.0.1/', 'registry.example.com', false, /loopback/],
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
    ['http://[::1]:5000/auth', '[::1]:5000', true, undefined],
    ['https://[::1]/auth', '[::1]:443', false, undefined],
    ['http://localhost:5000/auth', 'LOCALHOST:5000', true, undefined],
    ['http://localhost:5000/auth', 'localhost:5000', false, /is http/],
  ];
  for (const [realm, host, insecure, reason] of cases) {
    const url = new URL(`${insecure ? 'http' : 'https'}://${host}/v2/`);
    const validate = () => validateRealm(realm, url).href;
    if (reason === undefined) t.equal(validate(), new URL(realm).href, realm);
    else t.throws(validate, { name: 'InvalidChallenge', message: reason }, `${realm} from ${host}`);
  }
});

t.test('the reason of a refusal has no login', async (t) => {
  const url = new URL('https://r.example.com/v2/');
  const validate = () => validateRealm('https://user:secret@auth.example.com/', url);
  t.throws(validate, { message: /^the realm holds a user name or password$/ });
});

t.test('a realm may be in the same kind of network as the registry', async (t) => {
  const cases: [realm: string, ip: string, reason: RegExp | undefined][] = [
    ['https://127.0.0.1:5001/token', '127.0.0.1', undefined],
    ['https://[::1]:5001/token', '127.0.0.1', undefined],
    ['https://localhost:5001/token', '::1', undefined],
    ['https://10.0.0.9/token', '10.0.0.1', undefined],
    ['https://127.0.0.1:5001/token', '10.0.0.1', /loopback/],
    ['https://localhost:5001/token', '10.0.0.1', /this machine/],
    ['https://10.0.0.9/token', '8.8.8.8', /private/],
    ['https://169.254.169.254/token', '127.0.0.1', /metadata/],
    ['https://metadata.google.internal/token', '127.0.0.1', /metadata service/],
    ['http://127.0.0.1:5001/token', '127.0.0.1', /is http/],
  ];
  for (const [realm, ip, reason] of cases) {
    const validate = () => validateRealm(realm, new URL('https://registry.example.com/v2/'), ip);
    if (reason === undefined) t.doesNotThrow(validate, `${realm} from ${ip}`);
    else t.throws(validate, { message: reason }, `${realm} from ${ip}`);
  }
});
