import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { defaultConfigPathCandidates } from '../../daemon/containerd/config/rules.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';

t.test('the example of each distribution is a valid configuration of an agent', async (t) => {
  const dir = 'examples/distributions';
  const names = readdirSync(dir);
  t.equal(names.length, 10);
  for (const name of names) {
    const file = join(dir, name);
    const { problems, configuration } = await loadConfiguration({ file, env: {}, flags: {}, part: 'agent' });
    t.strictSame(problems, [], name);
    t.equal(configuration?.hostRoot, '/host', name);
    for (const path of configuration?.containerdConfigPathCandidates ?? [])
      t.ok(defaultConfigPathCandidates.includes(path), `${name}: ${path} is a default path`);
  }
});
