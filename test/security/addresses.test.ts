/**
 * Attack: the registry of an image is a service of the node or the cloud, by an unusual notation of its
 * address.
 */
import t, { type Test } from 'tap';
import { createRegistrySource } from '../../src/images/sources/registry-source.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { createDefaultEndpoints } from '../../src/registry/endpoints/default-endpoints.ts';
import { testClient } from '../support/registry/client.ts';
import { startCountingListener } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

/** Names as an attacker's DNS resolves them. */
const names: Readonly<Record<string, string>> = {
  'loopback.evil.test': '127.0.0.1',
  'loopback6.evil.test': '::1',
  'metadata.evil.test': '169.254.169.254',
  'any.evil.test': '0.0.0.0',
  'nat64.evil.test': '64:ff9b::a9fe:a9fe',
  'metadata.google.internal': '169.254.169.254',
};

async function attacker(t: Test) {
  const client = testClient({
    resolve: (name, _options, callback) => {
      const address = names[name];
      if (address === undefined)
        callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
      else callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
    },
  });
  t.teardown(() => client.close());
  const inspector = createRegistrySource({
    registry: client,
    endpoints: createDefaultEndpoints({ proxies: {}, insecureRegistries: [] }),
    credentials: { lookup: () => Promise.resolve([]) },
    mayAskAnonymously: () => true,
  });
  return async (image: string) => {
    const reference = parseReference(image);
    const request = { image, reference, maxAgeMs: 0, pullCredentials: [] };
    return (await inspector.lookup(request, { signal: neverAborted })).error;
  };
}

/** Internal hosts, in notations of each kind. `http/reach/address.test.ts` has all kinds of addresses. */
const metadata = [
  '169.254.169.254',
  '169.254.170.2:80',
  '0xa9fea9fe:80',
  '0251.0376.0251.0376',
  '[::ffff:169.254.169.254]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '0.0.0.0:5000',
  'metadata.google.internal',
];

const node = [
  '127.0.0.1:10250',
  'localhost:10250',
  '2130706433:10250',
  '0177.0.0.1:2379',
  '[::1]:10250',
  '10.0.0.1:10250',
  'registry.test:6443',
];

t.test('metadata services, link-local and unspecified addresses are refused', async (t) => {
  const attack = await attacker(t);
  for (const host of metadata) await refused(t, attack, host);
});

t.test('ports of the node are refused', async (t) => {
  const attack = await attacker(t);
  for (const host of node) await refused(t, attack, host);
});

t.test('names that resolve to such addresses, or to localhost, are refused', async (t) => {
  const { port, connections } = await startCountingListener(t);
  const attack = await attacker(t);
  for (const name of Object.keys(names)) await refused(t, attack, `${name}:${port}`);
  t.equal(connections(), 0);
});

/** Each image is refused without a connection, or is an invalid reference. */
async function refused(
  t: Test,
  attack: (image: string) => Promise<{ code: string; message: string } | undefined>,
  host: string,
): Promise<void> {
  const image = `${host}/latest/meta-data`;
  let error: { code: string; message: string } | undefined;
  try {
    error = await attack(image);
  } catch (thrown) {
    like(t, thrown, { name: 'InvalidReference' }, `${image} is an invalid reference`);
    return;
  }
  t.equal(error?.code, 'forbidden', `${image}: ${error?.message}`);
}
