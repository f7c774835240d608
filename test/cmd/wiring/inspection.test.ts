import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { homeDirectory, openInspection } from '../../../cmd/wiring/inspection.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { dockerConfig } from '../world.ts';
import { silentLog } from '../../support/captured.ts';
import { like } from '../../support/like.ts';

t.test("`dockerConfigFile` is read beside the node's, and not below `hostRoot`", async (t) => {
  const login = dockerConfig('ghcr.io', 'robot', 'password-of-robot');
  const dir = t.testdir({ mine: { '.dockerconfigjson': login }, host: {} });
  const file = join(dir, 'mine/.dockerconfigjson');
  const base = { ...defaultConfiguration(), hostRoot: join(dir, 'host'), containerdConfigPathCandidates: [] };
  for (const dockerConfigs of ['node', 'none'] as const) {
    for (const configuration of [base, { ...base, dockerConfigFile: file }]) {
      const log = silentLog;
      const current = () => configuration;
      const inspection = await openInspection({ configuration: current, dockerConfigs, env: {}, log });
      const found = inspection.sources.find(({ place }) => place === file);
      const parts = await found?.source.describe();
      like(t, parts, configuration.dockerConfigFile === file ? [{ state: 'used' }] : undefined);
      await inspection.close();
    }
  }
});

const isRoot = process.getuid?.() === 0;

t.test('a user without a home directory', { skip: !isRoot && 'only root can start it' }, async (t) => {
  const file = JSON.stringify(new URL('../../../cmd/wiring/inspection.ts', import.meta.url));
  // It becomes that user only after the import: others may not read this directory.
  const become = 'process.setgid(54321); process.setuid(54321);';
  const script = `import { homeDirectory } from ${file}; ${become} process.stdout.write(homeDirectory());`;
  // By `env -i`, because tap adds variables to child processes.
  const args = ['-i', process.execPath, '--input-type=module', '-e', script];
  t.equal(execFileSync('env', args, { encoding: 'utf8' }), '/');
});

t.test('a user with one', async (t) => t.equal(homeDirectory(), homedir()));
