/** Attack: an image name contains the name of a registry, to get that registry's credential. */
import { join } from 'node:path';
import t from 'tap';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { directory, dockerConfig, pullSecret, write } from '../cmd/world.ts';
import { openNode, pluginConfig, writePlugin } from './support.ts';

const user = { username: 'ann', password: 'password-of-ann' };

/** Names that are not quay.io, but that a careless comparison accepts. */
const lookalikes = [
  'evil.io/quay.io/x',
  'evil.io/quay.io',
  'quay.io.evil.io/x',
  'notquay.io/x',
  'not-quay.io/x',
  'quay.io.:443/x',
  'quay.ioo/x',
  'quay.i/x',
  'uay.io/x',
  'evil.quay.io/x',
  'quay.io-evil.io/x',
  'quay-io/x',
  'quayxio/x',
  'quay.io:443/x',
  'quay.io:8443/x',
  'Quay.io/x',
  'QUAY.IO/x',
  'evil.io:443/quay.io/x',
  'localhost/quay.io/x',
  '127.0.0.1:5000/quay.io/x',
  'evil.io/https/quay.io/x',
];

t.test('no source has a credential for such names', async (t) => {
  const root = directory(t);
  write(root, {
    'var/lib/kubelet/config.json': dockerConfig('https://quay.io/v2/', user.username, user.password),
    'plugins.json': pluginConfig(['quay.io']),
    'creds/quay.io.toml': 'user = "ann"\nsecret = "password-of-ann"\n',
  });
  const plugins = directory(t);
  // It offers the credential for every name.
  writePlugin(plugins, {
    'quay.io': user,
    ...Object.fromEntries(lookalikes.map((name) => [name.replace(/\/.*/, ''), user])),
  });
  const { inspection } = await openNode(t, {
    dockerConfigPathCandidates: join(root, 'var/lib/kubelet/config.json'),
    credsDir: join(root, 'creds'),
    'kubeletConfig.config': join(root, 'plugins.json'),
    'kubeletConfig.binDir': plugins,
  });
  const secret = JSON.parse(pullSecret(dockerConfig('quay.io', 'ann', 'password-of-ann'))) as Secret;
  const pod = createPullSecretSource([secret]);
  const sources: readonly Pick<LiveCredentialSource, 'name' | 'lookup'>[] = [
    pod,
    ...inspection.sources.map(({ source }) => source).filter(({ name }) => name !== 'containerd'),
  ];
  t.equal(sources.length, 4);
  for (const source of sources) {
    t.equal((await source.lookup('quay.io/team/app')).length, 1, `${source.name} has it for quay.io`);
    for (const name of lookalikes) {
      const repository = repositoryOf(name);
      if (repository !== undefined)
        t.strictSame(await source.lookup(repository), [], `${source.name}: ${name}`);
    }
  }
});

/** The repository as the agent parses it; `undefined` for an invalid reference. */
function repositoryOf(name: string): string | undefined {
  try {
    return parseReference(name).repository;
  } catch {
    return undefined;
  }
}
