import t from 'tap';
import {
  createDefaultEndpoints,
  originEndpoint,
  withNodeEndpoints,
  type Endpoint,
  type EndpointSource,
} from '../../../src/registry/endpoints/endpoint.ts';
import { like } from '../../support/like.ts';
import { targetOf } from '../../support/registry/client.ts';

t.test('each namespace has an origin with scheme and TLS settings as in containerd', async (t) => {
  const source = createDefaultEndpoints();
  const cases = [
    // namespace, base, httpFallback, skipVerify
    ['docker.io', 'https://registry-1.docker.io/v2', false, false],
    ['ghcr.io', 'https://ghcr.io/v2', false, false],
    ['registry.corp:5000', 'https://registry.corp:5000/v2', false, false],
    ['registry.corp:80', 'https://registry.corp:80/v2', false, false],
    ['localhost', 'https://localhost/v2', false, false],
    ['localhost:443', 'https://localhost:443/v2', false, false],
    ['localhost:80', 'http://localhost:80/v2', false, false],
    ['localhost:5000', 'https://localhost:5000/v2', true, true],
    ['127.0.0.1:5000', 'https://127.0.0.1:5000/v2', true, true],
    ['127.9.9.9:5000', 'https://127.9.9.9:5000/v2', true, true],
    ['[::1]:5000', 'https://[::1]:5000/v2', true, true],
    ['[::1]', 'https://[::1]/v2', false, false],
    ['foo.localhost:5000', 'https://foo.localhost:5000/v2', false, false],
    ['10.0.0.1:5000', 'https://10.0.0.1:5000/v2', false, false],
    ['0.0.0.0:5000', 'https://0.0.0.0:5000/v2', false, false],
    ['2130706433:5000', 'https://2130706433:5000/v2', false, false],
  ] as const;
  const expected = {
    namespaceParameter: false,
    acceptsCredentials: true,
    resolve: true,
    pull: true,
    origin: 'default',
  };
  for (const [namespace, base, httpFallback, skipVerify] of cases) {
    const [endpoint, ...others] = await source.endpoints(targetOf(namespace));
    t.strictSame(others, [], namespace);
    like(t, endpoint, { ...expected, base, namespace, httpFallback, tls: { skipVerify } }, namespace);
  }
  t.equal((await source.endpoints(targetOf('docker.io')))[0]?.host, 'registry-1.docker.io');
});

t.test('a proxy comes first, the origin last', async (t) => {
  const cases = [
    ['docker-proxy.company.corp', 'https://docker-proxy.company.corp/v2', 'docker-proxy.company.corp'],
    ['proxy.corp:8443/a/docker', 'https://proxy.corp:8443/a/docker/v2', 'proxy.corp:8443'],
    ['https://proxy.corp/v2/', 'https://proxy.corp/v2', 'proxy.corp'],
    ['http://proxy.corp:5000', 'http://proxy.corp:5000/v2', 'proxy.corp:5000'],
  ] as const;
  for (const [written, base, host] of cases) {
    const source = createDefaultEndpoints({ proxies: { 'docker.io': written } });
    const endpoints = await source.endpoints(targetOf('docker.io'));
    t.equal(endpoints.length, 2);
    const expected = {
      namespace: 'docker.io',
      namespaceParameter: true,
      httpFallback: false,
      tls: { skipVerify: false },
    };
    like(t, endpoints[0], {
      ...expected,
      base,
      host,
      acceptsCredentials: true,
      resolve: true,
      origin: 'proxies',
    });
    like(t, endpoints[1], { base: 'https://registry-1.docker.io/v2', origin: 'default' });
  }
  const source = createDefaultEndpoints({ proxies: { 'docker.io': 'proxy.corp' } });
  t.equal((await source.endpoints(targetOf('ghcr.io'))).length, 1, 'other namespaces have no proxy');
});

t.test('insecureRegistries fall back to http and skip verification', async (t) => {
  const source = createDefaultEndpoints({ insecureRegistries: ['registry.corp:5000'] });
  like(t, (await source.endpoints(targetOf('registry.corp:5000')))[0], {
    base: 'https://registry.corp:5000/v2',
    httpFallback: true,
    tls: { skipVerify: true },
    origin: 'insecureRegistries',
  });
  like(t, (await source.endpoints(targetOf('registry.corp')))[0], {
    httpFallback: false,
    tls: { skipVerify: false },
  });
});

t.test('the fingerprint follows the configuration', async (t) => {
  const of = (options: Parameters<typeof createDefaultEndpoints>[0]) =>
    createDefaultEndpoints(options).fingerprint();
  t.equal(of({ proxies: { 'docker.io': 'a.corp' } }), of({ proxies: { 'docker.io': 'a.corp' } }));
  const all = [
    of({}),
    of({ proxies: { 'docker.io': 'a.corp' } }),
    of({ proxies: { 'ghcr.io': 'a.corp' } }),
    of({ insecureRegistries: ['a.corp'] }),
    withNodeEndpoints(createDefaultEndpoints(), node([])).fingerprint(),
    withNodeEndpoints(createDefaultEndpoints(), node([], 'other')).fingerprint(),
    withNodeEndpoints(createDefaultEndpoints({ insecureRegistries: ['a.corp'] }), node([])).fingerprint(),
  ];
  t.equal(new Set(all).size, all.length);
  t.notMatch(all.join(' '), /corp/);
});

const tls = { ca: [], client: [], skipVerify: false };
const mirror: Endpoint = {
  ...originEndpoint('gcr.io', tls),
  base: 'https://m/v2',
  host: 'm',
  origin: '/certs.d/gcr.io',
};

function node(endpoints: Endpoint[], fingerprint = 'n'): EndpointSource {
  return { endpoints: () => Promise.resolve(endpoints), fingerprint: () => fingerprint };
}

t.test('proxies come first, then the endpoints of the node', async (t) => {
  const own = createDefaultEndpoints({ proxies: { 'gcr.io': 'p.example' } });
  const source = withNodeEndpoints(own, node([mirror, originEndpoint('gcr.io', tls)]));
  t.strictSame(
    (await source.endpoints(targetOf('gcr.io'))).map(({ host }) => host),
    ['p.example', 'm', 'gcr.io'],
  );
});

t.test('insecureRegistries changes the origin among the endpoints of the node', async (t) => {
  const own = createDefaultEndpoints({ insecureRegistries: ['gcr.io'] });
  const source = withNodeEndpoints(own, node([mirror, originEndpoint('gcr.io', tls)]));
  like(t, await source.endpoints(targetOf('gcr.io')), [
    { host: 'm', httpFallback: false },
    { host: 'gcr.io', httpFallback: true, tls: { skipVerify: true } },
  ]);
  t.equal(
    (await withNodeEndpoints(own, node([mirror])).endpoints(targetOf('gcr.io'))).length,
    1,
    'no endpoint is added',
  );
});

t.test('an error of the node endpoints is thrown', async (t) => {
  const failing: EndpointSource = {
    endpoints: () => Promise.reject(new Error('no CA')),
    fingerprint: () => '',
  };
  const own = createDefaultEndpoints({ proxies: { 'gcr.io': 'p.example' } });
  await t.rejects(withNodeEndpoints(own, failing).endpoints(targetOf('gcr.io')), /no CA/);
});
