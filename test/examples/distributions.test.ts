import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { defaultConfigPathCandidates } from '../../daemon/containerd/config/rules.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';

const dir = fileURLToPath(new URL('../../examples/distributions', import.meta.url));

const expected = ['aks', 'bottlerocket', 'eks', 'gke', 'k0s', 'k3s', 'kubeadm', 'microk8s', 'rke2', 'talos'];

t.test('each distribution has a configuration', async (t) => {
  t.strictSame(
    readdirSync(dir).map((file) => basename(file, '.toml')),
    expected,
  );
});

for (const name of expected) {
  t.test(`${name} is a valid configuration`, async (t) => {
    const file = join(dir, `${name}.toml`);
    const { problems, configuration } = await loadConfiguration({ file, env: {}, flags: {}, part: 'agent' });
    t.strictSame(problems, []);
    t.equal(configuration?.hostRoot, '/host');
    for (const path of configuration?.containerdConfigPathCandidates ?? []) {
      t.ok(defaultConfigPathCandidates.includes(path), `${path} is a default path`);
    }
  });
}
