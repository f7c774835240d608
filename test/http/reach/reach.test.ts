import t from 'tap';
import * as fc from 'fast-check';
import { addressKind } from '../../../src/http/reach/address.ts';
import type { LookupAddress } from 'node:dns';
import {
  checkedLookup,
  checkTarget,
  endpointReach,
  namesLoopback,
  targetReach,
} from '../../../src/http/reach/reach.ts';
import { originEndpoint, type Endpoint } from '../../../src/registry/endpoints/endpoint.ts';

t.test('addresses have a kind, also at the edges of each range', async (t) => {
  const cases: Record<string, string> = {
    public: `
      8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
      169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 223.255.255.255 2606:4700::1111
      2003::1 fbff::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1
    `,
    private: `
      10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 172.16.0.0 172.31.255.255 192.168.0.1 198.18.0.1
      fc00:: fd00:ec1:ffff::1 fd00:ec3:: fdff:ffff::1 fec0::1 ::ffff:10.0.0.1 ::ffff:a00:1 ::10.0.0.1 64:ff9b::a00:1
      64:ff9b:1::808:808 2002:a00:1:: ::ffff:0:a00:1
    `,
    loopback: '127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 0:0:0:0:0:ffff:7f00:1 64:ff9b::7f00:1',
    'link-local': '169.254.0.1 169.254.255.255 fe80::1 FEBF::1 fe80::1%eth0 ::ffff:169.254.1.1',
    metadata: `
      169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254
      fd00:ec2:: fd00:ec2::23 fd00:ec2::250 fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff
      ::ffff:169.254.169.254 64:ff9b::169.254.169.254 ::ffff:a9fe:a9fe
    `,
    unspecified: '0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0 0:0:0:0:0:0:0:0',
    multicast: '224.0.0.1 239.255.255.255 ff02::1',
    reserved: '240.0.0.1 255.255.255.255 192.0.0.1 2001::1',
  };
  for (const [kind, addresses] of Object.entries(cases)) {
    for (const address of addresses.trim().split(/\s+/)) t.equal(addressKind(address), kind, address);
  }
  for (const text of ['', 'localhost', '1.2.3', '1.2.3.4.5', '0x7f.0.0.1', '[::1]', ':::', '1.2.3.4%eth0']) {
    t.equal(addressKind(text), undefined, text);
  }
});

t.test('property: an IPv4 address has the same kind in every IPv6 notation', async (t) => {
  fc.assert(
    fc.property(fc.ipV4(), (ip) => {
      const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number);
      const [high, low] = [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
      const kind = addressKind(ip);
      for (const mapped of [
        `::ffff:${ip}`,
        `64:ff9b::${ip}`,
        `::ffff:${high}:${low}`,
        `2002:${high}:${low}::`,
      ]) {
        t.equal(addressKind(mapped), kind, mapped);
      }
    }),
    { numRuns: 200 },
  );
  fc.assert(
    fc.property(fc.ipV6(), (ip) => addressKind(ip) !== undefined),
    { numRuns: 500 },
  );
});

const tls = { ca: [], client: [], skipVerify: false };
const origin = (namespace: string): Endpoint => originEndpoint(namespace, tls);
const configured: Endpoint = { ...origin('registry.corp'), origin: 'proxies' };

t.test(
  'loopback is allowed only for localhost and configured endpoints, link-local and metadata never',
  async (t) => {
    const cases = [
      ['203.0.113.7', true, true, true],
      ['10.1.2.3', true, true, true],
      ['127.0.0.1', false, true, true],
      ['::ffff:127.0.0.1', false, true, true],
      ['169.254.169.254', false, false, false],
      ['0.0.0.0', false, false, false],
      ['224.0.0.1', false, false, false],
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
    ['10.0.0.1', '224.0.0.1', false],
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
