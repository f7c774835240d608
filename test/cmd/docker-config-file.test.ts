import { join } from 'node:path';
import t from 'tap';
import { openInspection } from '../../cmd/wiring/inspection.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';
import { createLog } from '../../src/telemetry/log.ts';

const login = JSON.stringify({
  auths: { 'ghcr.io': { auth: Buffer.from('robot:password-of-robot').toString('base64') } },
});

t.test('dockerConfigFile is read beside those of the node, and not below hostRoot', async (t) => {
  const dir = t.testdir({ mine: { '.dockerconfigjson': login }, host: {} });
  const file = join(dir, 'mine/.dockerconfigjson');
  for (const dockerConfigs of ['node', 'none'] as const) {
    const sourcesWith = async (
      flags: Record<string, string>,
    ): Promise<readonly (readonly [string, string])[]> => {
      const { configuration } = await loadConfiguration({
        env: {},
        flags: { hostRoot: join(dir, 'host'), containerdConfigPathCandidates: '', ...flags },
      });
      if (!configuration) throw new TypeError('no configuration');
      const log = createLog({ destination: { write: () => undefined } });
      const inspection = await openInspection({
        configuration: () => configuration,
        dockerConfigs,
        env: {},
        log,
      });
      const states = await Promise.all(
        inspection.sources.map(async ({ source, place }) => {
          const parts = await source.describe();
          return [place, parts.map(({ state }) => state).join(',')] as const;
        }),
      );
      await inspection.close();
      return states;
    };
    t.match(new Map(await sourcesWith({ dockerConfigFile: file })).get(file), /used/);
    t.notOk(new Map(await sourcesWith({})).has(file));
  }
});
