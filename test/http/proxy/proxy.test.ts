import t from 'tap';
import { bypasses, describeProxies, proxyFor } from '../../../src/http/proxy/proxy.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { like } from '../../support/like.ts';

const https = new URL('https://registry.corp/v2/');
const http = new URL('http://registry.corp/v2/');

t.test('the variable depends on the scheme; upper case comes first', async (t) => {
  const environment = {
    HTTPS_PROXY: 'http://one:3128',
    https_proxy: 'http://two:3128',
    http_proxy: 'three:8080',
  };
  t.equal(proxyFor(https, environment)?.url.href, 'http://one:3128/');
  t.equal(proxyFor(http, environment)?.url.href, 'http://three:8080/', 'without a scheme it is http');
  t.equal(proxyFor(https, { HTTPS_PROXY: '', https_proxy: 'http://two:3128' })?.url.host, 'two:3128');
  t.equal(proxyFor(https, { HTTP_PROXY: 'http://one:3128' }), undefined, 'no proxy for the other scheme');
  t.equal(proxyFor(http, { HTTP_PROXY: 'http://one', REQUEST_METHOD: 'GET' }), undefined, 'httpoxy');
  t.equal(proxyFor(https, {}), undefined);
});

t.test('credentials of the proxy are a secret, not part of its URL', async (t) => {
  const environment = { HTTPS_PROXY: 'http://ann:p%40ss-word@proxy.corp:3128' };
  const proxy = proxyFor(https, environment);
  like(t, describeProxies(environment), [{ where: 'HTTPS_PROXY', what: 'proxy.corp:3128, with a login' }]);
  t.equal(proxy?.url.href, 'http://proxy.corp:3128/');
  t.equal(reveal(proxy?.authorization ?? ({} as never)), `Basic ${btoa('ann:p@ss-word')}`);
  t.notMatch(JSON.stringify(proxy), /p@ss|p%40ss/);
  t.equal(proxyFor(https, { HTTPS_PROXY: 'http://proxy.corp' })?.authorization, undefined);
});

t.test('a malformed variable is an error that does not quote it', async (t) => {
  const values = ['http://', 'socks5://ann:password@proxy:1080', 'http://ann:password@a b'];
  // Found by fuzzing: a malformed percent escape.
  for (const value of [...values, 'http://a%zz:password@proxy', 'http://ann:password%@proxy']) {
    try {
      proxyFor(https, { HTTPS_PROXY: value });
      t.fail(value);
    } catch (error) {
      like(t, error, { name: 'ProxyError', message: /^HTTPS_PROXY/ });
      t.notMatch(String(error), /password/);
    }
  }
});

t.test('NO_PROXY matches as in Go', async (t) => {
  const cases = [
    ['https://registry.corp/', '', false],
    ['https://registry.corp/', '*', true],
    ['https://registry.corp/', 'registry.corp', true],
    ['https://registry.corp./', 'registry.corp', true],
    ['https://registry.corp/', ' other , REGISTRY.corp ', true],
    ['https://a.registry.corp/', 'registry.corp', true],
    ['https://aregistry.corp/', 'registry.corp', false],
    ['https://registry.corp/', '.registry.corp', false],
    ['https://a.registry.corp/', '.registry.corp', true],
    ['https://a.registry.corp/', '*.registry.corp', true],
    ['https://registry.corp/', '*.registry.corp', false],
    ['https://registry.corp/', 'registry.corp:443', true],
    ['https://registry.corp:5000/', 'registry.corp:443', false],
    ['http://registry.corp/', 'registry.corp:80', true],
    ['https://10.1.2.3/', '10.0.0.0/8', true],
    ['https://11.1.2.3/', '10.0.0.0/8', false],
    ['https://10.1.2.3/', '10.0.0.0/33', false],
    ['https://10.1.2.3/', '10.0.0.0/', false],
    ['https://registry.corp/', '10.0.0.0/8', false],
    ['https://10.1.2.3/', '10.1.2.3', true],
    ['https://10.1.2.3:5000/', '10.1.2.3:5000', true],
    ['https://10.1.2.3:5001/', '10.1.2.3:5000', false],
    ['https://10.1.2.3/', '.3', false],
    ['https://[fd00::1]/', 'fd00::/8', true],
    ['https://[fd00::1]/', 'fd00::1', true],
    ['https://[fd00::1]:5000/', '[fd00::1]:5000', true],
    ['https://[fd00::1]:5001/', '[fd00::1]:5000', false],
    ['https://localhost:5000/', '', true],
    ['https://127.0.0.1:5000/', '', true],
    ['https://127.9.9.9/', '', true],
    ['https://[::1]:5000/', '', true],
    ['https://localhost.corp/', '', false],
  ] as const;
  for (const [target, list, expected] of cases) {
    t.equal(bypasses(new URL(target), list), expected, `${target} NO_PROXY=${list}`);
  }
  t.equal(proxyFor(https, { HTTPS_PROXY: 'http://one', NO_PROXY: '.corp' }), undefined);
  t.equal(proxyFor(https, { HTTPS_PROXY: 'http://one', no_proxy: 'corp' }), undefined);
});
