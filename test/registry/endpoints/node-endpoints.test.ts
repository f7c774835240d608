import t from 'tap';
import { createDefaultEndpoints, originEndpoint } from '../../../src/registry/endpoints/default-endpoints.ts';
import type { Endpoint, EndpointSource } from '../../../src/registry/endpoints/endpoint.ts';
import { withNodeEndpoints } from '../../../src/registry/endpoints/node-endpoints.ts';

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
  t.same(
    (await source.endpoints('gcr.io')).map(({ host }) => host),
    ['p.example', 'm', 'gcr.io'],
  );
});

t.test('a registry that is insecure by our configuration', async (t) => {
  const own = createDefaultEndpoints({ insecureRegistries: ['gcr.io'] });
  const source = withNodeEndpoints(own, node([mirror, originEndpoint('gcr.io', tls)]));
  t.match(await source.endpoints('gcr.io'), [
    { host: 'm', httpFallback: false },
    { host: 'gcr.io', httpFallback: true, tls: { skipVerify: true } },
  ]);
  t.equal((await withNodeEndpoints(own, node([mirror])).endpoints('gcr.io')).length, 1, 'it is not added');
});

t.test('if the node cannot pull, there is no endpoint', async (t) => {
  const failing: EndpointSource = {
    endpoints: () => Promise.reject(new Error('no CA')),
    fingerprint: () => '',
  };
  const own = createDefaultEndpoints({ proxies: { 'gcr.io': 'p.example' } });
  await t.rejects(withNodeEndpoints(own, failing).endpoints('gcr.io'), /no CA/);
});

t.test('the fingerprint covers both', async (t) => {
  const prints = [
    withNodeEndpoints(createDefaultEndpoints(), node([])),
    withNodeEndpoints(createDefaultEndpoints(), node([], 'other')),
    withNodeEndpoints(createDefaultEndpoints({ insecureRegistries: ['a'] }), node([])),
  ].map((source) => source.fingerprint());
  t.equal(new Set(prints).size, 3);
});
