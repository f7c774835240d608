import t from 'tap';
import {
  agentsLocation,
  listenAddress,
  registryHost,
  registryPattern,
  registryProxy,
} from '../../../src/policy/value-kinds/addresses.ts';
import type { Kind } from '../../../src/policy/settings/setting.ts';
import { never } from '../report.ts';

const words = (text: string): string[] => text.split(' ');
const long = 'x.'.repeat(126);

const cases: [string, Kind<unknown>, good: string[], bad: string[]][] = [
  [
    'listen',
    listenAddress,
    words('127.0.0.1:8443 0.0.0.0:0 [::1]:80 :8443 localhost:65535'),
    ['8443', '127.0.0.1', '127.0.0.1:65536', 'https://a:1', 'a:b', '::1:80', ' :1'],
  ],
  [
    'registry host',
    registryHost,
    [
      ...words('docker.io registry.example.com:5000 localhost:5000 10.0.0.1 [::1]:5000 [fd00::1]'),
      ...words(`a.io:65535 [1::5:6:7] ${long}x ${long}x:5000`),
    ],
    [
      ...words('https://docker.io docker.io/library *.io -a.io a-.io a..b a: a:65536 [1:2] ::1 [::g]'),
      ...words(`u@h a.5 1.2.3.256 [1:2::3:4:5:6:7:8] ${long}xy`),
      'a b',
    ],
  ],
  [
    'registry pattern',
    registryPattern,
    words('*.corp.example.com * a*.io:5000 docker.io registry.corp:5000/team/x'),
    ['https://*', 'a/../b', 'a/b c', '* *', '/a', ''],
  ],
  [
    'agents',
    agentsLocation,
    words('https://10.0.0.1:9443 https://[::1]:9443 https://agent.example endpointslices:archwright/agent'),
    [
      ...words('http://a:1 https://a:1/ https://u:p@a:1 https:a:1 dns:a:1 https://a:1?x=1 https://a:1#x'),
      ...words(
        'https://a:99999 endpointslices:agent endpointslices:a/b/c endpointslices:A/b agents https://',
      ),
    ],
  ],
  [
    'proxy',
    registryProxy,
    [
      ...words(
        'docker.io=docker-proxy.example.com docker.io=mirror:5000/hub localhost:5000=http://mirror:5000',
      ),
      '[::1]:5000=https://[::1]:5001/a/b',
    ],
    [
      ...words('docker.io docker.io= =mirror docker.io=ftp://mirror docker.io=mirror/../x'),
      ...words('docker.io=u:p@mirror docker.io=mirror?x=1 https://docker.io=mirror'),
      ...words('docker.io=mirror/#a docker.io=a=b'),
    ],
  ],
];

for (const [name, kind, good, bad] of cases) {
  t.test(`${name}: valid and invalid values`, async (t) => {
    for (const value of good) t.not(kind.read(value, never), undefined, value);
    for (const value of [...bad, 1, null]) {
      const reports: string[] = [];
      t.equal(
        kind.read(value, (message) => reports.push(message)),
        undefined,
        String(value),
      );
      t.equal(reports.length, 1, String(value));
      t.match(reports[0], /must (?:not )?be/, String(value));
    }
  });
}

t.test('a proxy is read and written', async (t) => {
  const value = { registry: 'localhost:5000', endpoint: 'http://mirror:5000/a' };
  t.strictSame(registryProxy.read('localhost:5000=http://mirror:5000/a', never), value);
  t.equal(registryProxy.write(value), 'localhost:5000=http://mirror:5000/a');
});
