import t, { type Test } from 'tap';
import { dnsDiscovery, parseDnsName } from '../../src/fleet/dns.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { readableLog } from '../support/captured.ts';

/** A discovery with a resolver that gives these answers in turn, then repeats the last one. */
function discover(t: Test, ...answers: (readonly string[] | Error | 'never')[]) {
  const resolved: string[] = [];
  const clock = createFakeClock();
  const { log, lines } = readableLog();
  const resolve = (name: string): Promise<readonly string[]> => {
    const answer = answers[Math.min(resolved.length, answers.length - 1)];
    resolved.push(name);
    if (answer === 'never') return new Promise(() => {});
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? []);
  };
  const discovery = dnsDiscovery({ name: 'agents.example', port: 9443, log, resolve, clock });
  t.teardown(() => discovery.close());
  return { discovery, resolved, clock, lines, urls: () => discovery.current().map((agent) => agent.url) };
}

t.test('each address is an agent', async (t) => {
  const { discovery, resolved, urls } = discover(t, ['10.0.0.2', '10.0.0.1', 'fd00::1', '10.0.0.1']);
  await discovery.ready(neverAborted);
  t.strictSame(urls(), ['https://10.0.0.1:9443', 'https://10.0.0.2:9443', 'https://[fd00::1]:9443']);
  t.strictSame(resolved, ['agents.example']);
});

t.test('the name is resolved every ten seconds; only changes are reported', async (t) => {
  const same = ['10.0.0.1'];
  const { discovery, resolved, clock, urls } = discover(t, same, same, same, ['10.0.0.2']);
  await discovery.ready(neverAborted);
  let changes = 0;
  discovery.onChange(() => {
    changes += 1;
  });
  await clock.advance(60_000);
  t.equal(resolved.length, 7);
  t.equal(changes, 1);
  t.strictSame(urls(), ['https://10.0.0.2:9443']);
});

t.test('while the name does not resolve, the last addresses stay and one line is logged', async (t) => {
  const { discovery, clock, urls, lines } = discover(t, ['10.0.0.1'], new Error('SERVFAIL'));
  await discovery.ready(neverAborted);
  await clock.advance(50_000);
  t.strictSame(urls(), ['https://10.0.0.1:9443']);
  t.equal(lines().match(/cannot be resolved/g)?.length, 1);
  t.match(lines(), /SERVFAIL/);
});

t.test('until the first answer, the name is resolved every second', async (t) => {
  const failure = new Error('ENOTFOUND');
  const { clock, urls, lines } = discover(t, failure, failure, ['10.0.0.1']);
  await clock.advance(1999);
  t.strictSame(urls(), []);
  await clock.advance(1);
  t.strictSame(urls(), ['https://10.0.0.1:9443']);
  t.match(lines(), /resolved again/);
});

t.test('a lookup times out after 5 s', async (t) => {
  const { clock, urls, lines } = discover(t, 'never', ['10.0.0.1']);
  await clock.advance(6000);
  t.strictSame(urls(), ['https://10.0.0.1:9443']);
  t.match(lines(), /no answer within 5000 ms/);
});

t.test('ready returns when its signal aborts', async (t) => {
  const { discovery } = discover(t, 'never');
  await discovery.ready(AbortSignal.abort());
  const later = new AbortController();
  const ready = discovery.ready(later.signal);
  later.abort();
  await ready;
  t.strictSame(discovery.current(), []);
});

t.test('at most 5,000 addresses are used', async (t) => {
  const { discovery, urls } = discover(
    t,
    Array.from({ length: 9000 }, (_, index) => `10.1.${index >> 8}.${index & 255}`),
  );
  await discovery.ready(neverAborted);
  t.equal(urls().length, 5000);
});

t.test('after close nothing is resolved or reported', async (t) => {
  const { discovery, resolved, clock } = discover(t, ['10.0.0.1'], ['10.0.0.2']);
  await discovery.ready(neverAborted);
  discovery.onChange(() => t.fail('reported after close'));
  discovery.close();
  await clock.advance(60_000);
  t.equal(resolved.length, 1);
});

t.test('the system resolver is used by default', async (t) => {
  const discovery = dnsDiscovery({ name: '127.0.0.1', port: 1, log: readableLog().log });
  t.teardown(() => discovery.close());
  await discovery.ready(neverAborted);
  t.strictSame(discovery.current(), [{ url: 'https://127.0.0.1:1' }]);
});

t.test('dns:name:port is parsed, and everything else is refused', async (t) => {
  const name = 'agents.ns.svc.cluster.local';
  t.strictSame(parseDnsName(`dns:${name}:9443`), { name, port: 9443 });
  t.strictSame(parseDnsName(' dns:a.:1 '), { name: 'a.', port: 1 });
  const wrong = ['', ':', ':a', ':a:', ':a:0', ':a:65536', ':a b:1', ':-a:1', ':a:1x'];
  for (const text of [...wrong.map((each) => `dns${each}`), '', 'a:1']) {
    t.throws(() => parseDnsName(text), { message: /write dns:name:port/ }, text);
  }
});
