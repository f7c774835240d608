import t, { type Test } from 'tap';
import { dnsDiscovery, parseDnsName } from '../../../src/fleet/discovery/dns.ts';
import { readableLog, until } from '../support.ts';

type Answer = readonly string[] | Error | 'never';

/** A resolver that gives these answers one after another, the last one for ever. */
function resolver(...answers: Answer[]): {
  resolve: (name: string) => Promise<readonly string[]>;
  asked: string[];
} {
  const asked: string[] = [];
  return {
    asked,
    resolve: (name) => {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(name);
      if (answer === 'never') return new Promise(() => {});
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? []);
    },
  };
}

function discover(t: Test, answers: Answer[], times: { refreshMs?: number; timeoutMs?: number } = {}) {
  const { resolve, asked } = resolver(...answers);
  const { log, lines } = readableLog();
  const discovery = dnsDiscovery({
    name: 'agents.example',
    port: 9443,
    log,
    resolve,
    refreshMs: 1,
    retryMs: 1,
    ...times,
  });
  t.teardown(() => discovery.close());
  return { discovery, asked, lines, urls: () => discovery.current().map((agent) => agent.url) };
}

const ever = new AbortController().signal;

t.test('each address is an agent', async (t) => {
  const { discovery, asked, urls } = discover(t, [['10.0.0.2', '10.0.0.1', 'fd00::1', '10.0.0.1']], {
    refreshMs: 60_000,
  });
  await discovery.ready(ever);
  t.strictSame(urls(), ['https://10.0.0.1:9443', 'https://10.0.0.2:9443', 'https://[fd00::1]:9443']);
  t.strictSame(asked, ['agents.example']);
});

t.test('changes are noticed, and told only where there are some', async (t) => {
  const { discovery, asked, urls } = discover(t, [['10.0.0.1'], ['10.0.0.1'], ['10.0.0.1'], ['10.0.0.2']]);
  await discovery.ready(ever);
  let changes = 0;
  discovery.onChange(() => {
    changes += 1;
  });
  await until(() => asked.length > 6);
  t.equal(changes, 1);
  t.strictSame(urls(), ['https://10.0.0.2:9443']);
});

t.test('while the name cannot be resolved the last answer stands, and it is said once', async (t) => {
  const { discovery, asked, urls, lines } = discover(t, [['10.0.0.1'], new Error('SERVFAIL')]);
  await discovery.ready(ever);
  await until(() => asked.length > 5);
  t.strictSame(urls(), ['https://10.0.0.1:9443']);
  t.equal(lines().match(/cannot be resolved/g)?.length, 1);
  t.match(lines(), /SERVFAIL/);
});

t.test('it is tried again until there is an answer', async (t) => {
  const { discovery, urls, lines } = discover(t, [
    new Error('ENOTFOUND'),
    new Error('ENOTFOUND'),
    ['10.0.0.1'],
  ]);
  t.strictSame(urls(), []);
  await discovery.ready(ever);
  t.strictSame(urls(), ['https://10.0.0.1:9443']);
  t.match(lines(), /resolved again/);
});

t.test('a resolver that does not answer is given up', async (t) => {
  const { discovery, urls, lines } = discover(t, ['never', ['10.0.0.1']], { timeoutMs: 5 });
  await discovery.ready(ever);
  t.strictSame(urls(), ['https://10.0.0.1:9443']);
  t.match(lines(), /not resolved within 5 ms/);
});

t.test('ready ends with its signal', async (t) => {
  const { discovery } = discover(t, ['never']);
  await discovery.ready(AbortSignal.abort());
  const later = new AbortController();
  const ready = discovery.ready(later.signal);
  later.abort();
  await ready;
  t.strictSame(discovery.current(), []);
});

t.test('an answer without end is cut', async (t) => {
  const many = Array.from({ length: 9000 }, (_, index) => `10.1.${index >> 8}.${index & 255}`);
  const { discovery, urls } = discover(t, [many], { refreshMs: 60_000 });
  await discovery.ready(ever);
  t.equal(urls().length, 5000);
});

t.test('after close nothing is asked or told', async (t) => {
  const { discovery, asked } = discover(t, [['10.0.0.1'], ['10.0.0.2']]);
  await discovery.ready(ever);
  discovery.onChange(() => t.fail('told after close'));
  discovery.close();
  const before = asked.length;
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(asked.length <= before + 1);
});

t.test('the system resolver is used by default', async (t) => {
  const { log } = readableLog();
  const discovery = dnsDiscovery({ name: '127.0.0.1', port: 1, log });
  t.teardown(() => discovery.close());
  await discovery.ready(ever);
  t.strictSame(discovery.current(), [{ url: 'https://127.0.0.1:1' }]);
});

t.test('how the name is written', (t) => {
  t.strictSame(parseDnsName('dns:agents.ns.svc.cluster.local:9443'), {
    name: 'agents.ns.svc.cluster.local',
    port: 9443,
  });
  t.strictSame(parseDnsName(' dns:a.:1 '), { name: 'a.', port: 1 });
  for (const text of [
    '',
    'dns:',
    'dns:a',
    'dns:a:',
    'dns:a:0',
    'dns:a:65536',
    'dns:a b:1',
    'dns:-a:1',
    'a:1',
    'dns:a:1x',
  ]) {
    t.throws(() => parseDnsName(text), { message: /write dns:name:port/ }, text);
  }
  t.end();
});
