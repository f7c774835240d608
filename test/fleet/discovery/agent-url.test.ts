import t from 'tap';
import { agentUrl, parseAgentUrl } from '../../../src/fleet/discovery/agent-url.ts';

t.test('good URLs are normalized', (t) => {
  for (const [text, url] of [
    ['https://agent.example:9443', 'https://agent.example:9443'],
    [' https://10.0.0.1:9443/ ', 'https://10.0.0.1:9443'],
    ['HTTPS://Agent.Example:9443', 'https://agent.example:9443'],
    ['https://[fd00::1]:9443', 'https://[fd00::1]:9443'],
    ['https://agent.example', 'https://agent.example'],
  ] as const) {
    t.equal(parseAgentUrl(text), url, text);
  }
  t.end();
});

t.test('others are refused, and say why', (t) => {
  for (const [text, why] of [
    ['', /is no URL/],
    ['agent:9443', /over https only/],
    ['10.0.0.1:9443', /is no URL/],
    ['http://agent:9443', /over https only/],
    ['https://agent:9443/v1', /more than a host and a port/],
    ['https://agent:9443?x=1', /more than a host and a port/],
    ['https://agent:9443#x', /more than a host and a port/],
    ['https://agent:99999', /is no URL/],
    ['https://user:hunter22@agent:9443', /no user or password/],
    ['http://user:hunter22@agent', /no user or password/],
  ] as const) {
    t.throws(() => parseAgentUrl(text), { name: 'TypeError', message: why }, text);
  }
  t.throws(() => parseAgentUrl('https://user:hunter22@ho st'), { message: /^(?!.*hunter22)/ });
  t.end();
});

t.test('addresses become URLs', (t) => {
  t.equal(agentUrl('10.0.0.1', 9443), 'https://10.0.0.1:9443');
  t.equal(agentUrl('fd00::1', 9443), 'https://[fd00::1]:9443');
  t.equal(agentUrl('agent.example', 1), 'https://agent.example:1');
  t.end();
});
