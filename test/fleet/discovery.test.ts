import t from 'tap';
import { staticDiscovery } from '../../src/fleet/discovery.ts';

t.test('a static list contains each agent once', async (t) => {
  const discovery = staticDiscovery(['https://a:1', 'https://b:2/', 'https://A:1']);
  await discovery.ready(AbortSignal.abort());
  t.strictSame(discovery.current(), [{ url: 'https://a:1' }, { url: 'https://b:2' }]);
  discovery.onChange(() => t.fail('it never changes'));
  discovery.close();
});

t.test('valid URLs are normalized', async (t) => {
  for (const [text, url] of [
    ['https://agent.example:9443', 'https://agent.example:9443'],
    [' https://10.0.0.1:9443/ ', 'https://10.0.0.1:9443'],
    ['HTTPS://Agent.Example:9443', 'https://agent.example:9443'],
    ['https://[fd00::1]:9443', 'https://[fd00::1]:9443'],
    ['https://agent.example', 'https://agent.example'],
  ] as const) {
    t.strictSame(staticDiscovery([text]).current(), [{ url }]);
  }
});

t.test('other URLs are refused with the reason, without their password', async (t) => {
  for (const [text, why] of [
    ['', /is not a URL/],
    ['agent:9443', /over https only/],
    ['10.0.0.1:9443', /is not a URL/],
    ['http://agent:9443', /over https only/],
    ['https://agent:9443/v1', /more than a host and a port/],
    ['https://agent:9443?x=1', /more than a host and a port/],
    ['https://agent:9443#x', /more than a host and a port/],
    ['https://agent:99999', /is not a URL/],
    ['https://user:hunter22@agent:9443', /no user or password/],
    ['http://user:hunter22@agent', /no user or password/],
    ['https://user:hunter22@ho st', /^(?!.*hunter22)/],
  ] as const) {
    t.throws(() => staticDiscovery(['https://a:1', text]), { name: 'TypeError', message: why }, text);
  }
});
