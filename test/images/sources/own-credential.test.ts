/** Endpoints with their own credential, and registries without anonymous requests. */
import t from 'tap';
import { createRegistrySource } from '../../../src/images/sources/registry-source.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { clientFor, credential, endpointOf, startRegistry } from '../../support/registry/client.ts';
import { image } from '../../support/registry/content.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

t.test('without anonymous requests, only endpoints with their own credential are used', async (t) => {
  const open = await startRegistry(t, { tls: false });
  const closed = await startRegistry(t, { tls: false, auth: { kind: 'basic', users: { own: 'secret1' } } });
  const client = clientFor(t);
  for (const registry of [open, closed]) registry.push('team/app', 'v1', image('linux/arm64'));
  const own = credential('own', 'secret1', { source: 'containerd', id: 'own' });
  const inspectAt = (endpoints: readonly ReturnType<typeof endpointOf>[]) =>
    createRegistrySource({
      registry: client,
      endpoints: { endpoints: async () => endpoints, fingerprint: () => '' },
      credentials: { lookup: async () => [] },
      mayAskAnonymously: () => false,
    }).lookup(
      {
        image: 'r.example/team/app:v1',
        reference: parseReference('r.example/team/app:v1'),
        maxAgeMs: 0,
        pullCredentials: [],
      },
      { signal: neverAborted },
    );
  const found = await inspectAt([endpointOf(open), endpointOf(closed, { ownCredential: own })]);
  like(t, found, { credentialSource: 'containerd', endpoint: closed.host });
  t.equal(open.requests.length, 0);
  like(t, await inspectAt([endpointOf(open)]), {
    error: { code: 'unauthorized', message: /privateRegistries/ },
  });
  t.equal(open.requests.length, 0);
});
