import { join } from 'node:path';
import t from 'tap';
import { openInspection } from '../../../cmd/wiring/inspection.ts';
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
