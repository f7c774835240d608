import t from 'tap';
import * as fc from 'fast-check';
import { addressKind } from '../../../src/http/reach/address.ts';

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
