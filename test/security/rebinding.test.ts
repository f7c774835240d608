/** Attack: a name resolves to a harmless address for the check, and to another one for the connection. */
import t, { type Test } from 'tap';
import { originEndpoint } from '../../src/registry/endpoints/default-endpoints.ts';
import type { Resolve } from '../../src/http/reach/reach.ts';
import { createCa } from '../support/certificates.ts';
import { clientFor, endpointOf, lookUp, startRegistry } from '../support/registry/client.ts';
import { multiArch } from '../support/registry/content.ts';
import { like } from '../support/like.ts';

/** Resolves to one address after the other, then always to the last. */
function rebinding(...addresses: readonly string[]): { resolve: Resolve; resolutions: () => number } {
  let resolutions = 0;
  return {
    resolutions: () => resolutions,
    resolve: (_name, _options, callback) => {
      const address = addresses[Math.min(resolutions, addresses.length - 1)] ?? '';
      resolutions += 1;
      callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
    },
  };
}

async function victim(t: Test) {
  const registry = await startRegistry(t, { tls: await createCa(), names: ['rebind.test'] });
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  return registry;
}

t.test('a name that first resolves to a public address, then to loopback, is refused', async (t) => {
  const registry = await victim(t);
  // TEST-NET-1 is not routed.
  const { resolve, resolutions } = rebinding('192.0.2.1', '127.0.0.1');
  const client = clientFor(t, { resolve, limits: { dialMs: 50 } });
  const tls = { ca: [registry.ca], client: [], skipVerify: false };
  const endpoint = originEndpoint(`rebind.test:${registry.port}`, tls);
  const first: unknown = await lookUp(client, endpoint).catch((error: unknown) => error);
  like(t, first, { name: 'RegistryError' });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await t.rejects(lookUp(client, endpoint), {
      name: 'RegistryError',
      message: attempt === 0 ? /this machine/ : /./,
    });
  }
  t.ok(resolutions() >= 2);
  t.strictSame(registry.requests, []);
  t.equal(registry.connections, 0, 'no connection');
});

t.test('the connection goes to the checked address', async (t) => {
  const registry = await victim(t);
  const { resolve, resolutions } = rebinding('127.0.0.1', '169.254.169.254');
  const client = clientFor(t, { resolve });
  const base = `https://rebind.test:${registry.port}/v2`;
  const ask = () => lookUp(client, endpointOf(registry, { base }));
  t.equal((await ask()).platforms.length, 1);
  t.equal(resolutions(), 1, 'one resolution per connection');
  registry.faults.add(/./, { kind: 'close-after-headers' }, { times: 1 });
  await t.rejects(ask(), { code: 'unavailable' });
  await t.rejects(ask(), { code: 'forbidden', message: /metadata address/ });
});
