import t from 'tap';
import type { LookupAddress } from 'node:dns';
import {
  checkedLookup,
  checkTarget,
  endpointReach,
  namesLoopback,
  targetReach,
} from '../../../src/http/reach/reach.ts';
import { originEndpoint, type Endpoint } from '../../../src/registry/endpoints/endpoint.ts';

const tls = { ca: [], client: [], skipVerify: false };
const origin = (namespace: string): Endpoint => originEndpoint(namespace, tls);
const configured: Endpoint = { ...origin('registry.corp'), origin: 'proxies' };

t.test(
  'loopback is allowed only for localhost and configured endpoints, link-local and metadata never',
  async (t) => {
    const cases = [
      ['203.0.113.7', true, true, true],
      ['10.1.2.3', true, true, true],
      ['fd12::1', true, true, true],
      ['127.0.0.1', false, true, true],
      ['::1', false, true, true],
      ['::ffff:127.0.0.1', false, true, true],
      ['169.254.169.254', false, false, false],
      ['169.254.1.1', false, false, false],
      ['fe80::1', false, false, false],
      ['0.0.0.0', false, false, false],
      ['::', false, false, false],
      ['224.0.0.1', false, false, false],
      ['255.255.255.255', false, false, false],
      ['not an address', false, false, false],
    ] as const;
    for (const [address, byName, byLoopback, byConfiguration] of cases) {
      const allowed = (endpoint: Endpoint) => endpointReach(endpoint).refusal(address) === undefined;
      t.equal(allowed(origin('registry.corp')), byName, `${address} of a name`);
      t.equal(allowed(origin('localhost:5000')), byLoopback, `${address} of localhost`);
      t.equal(allowed(configured), byConfiguration, `${address} of a configured endpoint`);
    }
  },
);

t.test('names and addresses of this machine are recognized', async (t) => {
  for (const [url, names] of [
    ['https://localhost/v2', true],
    ['https://LOCALHOST:5000/v2', true],
    ['http://127.8.9.1:5000/v2', true],
    ['https://[::1]:5000/v2', true],
    ['https://2130706433/v2', true],
    ['https://0x7f.1/v2', true],
    ['https://localhost.corp/v2', false],
    ['https://10.0.0.1/v2', false],
  ] as const) {
    t.equal(namesLoopback(url), names, url);
  }
});

t.test('ports of the node and literal addresses are refused before names are resolved', async (t) => {
  const check = (namespace: string) => {
    const endpoint = origin(namespace);
    checkTarget(new URL(endpoint.base), endpointReach(endpoint));
  };
  for (const namespace of [
    'localhost:10250',
    'registry.corp:6443',
    '10.0.0.1:2379',
    '169.254.169.254',
    '2852039166',
    '[fd00:ec2::254]',
    '0.0.0.0:5000',
  ]) {
    t.throws(() => check(namespace), { name: 'TransportError', failure: 'refused-address' }, namespace);
  }
  for (const namespace of ['localhost:5000', 'registry.corp', '10.0.0.1:5000', '[2001:db8::1]:5000']) {
    t.doesNotThrow(() => check(namespace), namespace);
  }
  const kubelet = new URL('https://registry.corp:10250/v2');
  t.doesNotThrow(() => checkTarget(kubelet, endpointReach(configured)), 'configured');
});

t.test('a realm or redirect may be in the same kind of network as the registry', async (t) => {
  const cases = [
    ['203.0.113.7', '203.0.113.8', true],
    ['203.0.113.7', '10.0.0.1', false],
    ['10.0.0.2', '10.0.0.1', true],
    ['10.0.0.2', '127.0.0.1', false],
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '169.254.169.254', false],
    ['127.0.0.1', '0.0.0.0', false],
    ['10.0.0.1', '224.0.0.1', false],
    ['10.0.0.1', '255.255.255.255', false],
    [undefined, '10.0.0.1', false],
    ['no address', '10.0.0.1', false],
  ] as const;
  for (const [registry, address, allowed] of cases) {
    t.equal(targetReach(registry).refusal(address) === undefined, allowed, `${registry} → ${address}`);
  }
  t.match(
    targetReach('203.0.113.7').refusal('10.0.0.1'),
    'a private address, which a public registry may not',
  );
  t.match(targetReach('203.0.113.7').portRefusal(10250), /node's own services/);
});

t.test('one forbidden address refuses the name, and only checked addresses are dialed', async (t) => {
  const resolved = (addresses: LookupAddress[], all: boolean) =>
    new Promise((resolve, reject) => {
      const look = checkedLookup(endpointReach(origin('registry.corp')), (_name, options, callback) => {
        t.equal(options.all, true);
        callback(null, addresses);
      });
      look('registry.corp', { all }, (error, found) => (error ? reject(error) : resolve(found)));
    });
  const good = { address: '203.0.113.7', family: 4 };
  t.strictSame(await resolved([good], true), [good]);
  t.equal(await resolved([good], false), good.address);
  await t.rejects(resolved([good, { address: '169.254.169.254', family: 4 }], true), {
    name: 'TransportError',
    failure: 'refused-address',
  });
  await t.rejects(resolved([], true), { name: 'TransportError', failure: 'resolve' });
});
