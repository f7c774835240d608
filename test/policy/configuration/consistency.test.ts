import t from 'tap';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { inconsistencies } from '../../../src/policy/configuration/consistency.ts';
import type { Part } from '../../../src/policy/settings/setting.ts';

const plugins = (config?: string, configDir?: string, binDir?: string): Partial<Configuration> => ({
  'kubeletConfig.config': config,
  'kubeletConfig.configDir': configDir,
  'kubeletConfig.binDir': binDir,
});

t.test('contradictory settings are found, for the part that uses them', async (t) => {
  const two = { schedulableArchitectures: ['amd64', 'arm64'] };
  /** Keys with problems, separated by blanks. */
  const cases: Record<string, [values: Partial<Configuration>, expected: string, part?: Part]> = {
    nothing: [{}, '', 'webhook'],
    preferred: [{ ...two, preferredArchitecture: 'arm64' }, ''],
    'preferred elsewhere': [{ ...two, preferredArchitecture: 's390x' }, 'preferredArchitecture'],
    'preferred, any schedulable': [{ preferredArchitecture: 's390x' }, ''],
    weights: [{ ...two, preferredWeights: { arm64: 1, amd64: 2 } }, ''],
    'weights elsewhere': [
      { ...two, preferredWeights: { arm64: 1, arm: 2, s390x: 3 } },
      'preferredWeights.arm preferredWeights.s390x',
    ],
    fallback: [{ ...two, fallbackArchitecture: 'amd64' }, ''],
    'fallback elsewhere': [{ ...two, fallbackArchitecture: 'arm' }, 'fallbackArchitecture'],
    'two preferences': [
      { preferredArchitecture: 'arm64', preferredWeights: { arm64: 1 } },
      'preferredArchitecture',
    ],
    'plugins by file and by directory': [plugins('/a', '/b', '/c'), 'kubeletConfig.config'],
    'plugins by a file in a directory': [plugins('a.json', '/b', '/c'), ''],
    'plugins by a file outside of the directory': [
      plugins('../../passwd', '/b', '/c'),
      'kubeletConfig.config',
    ],
    'plugins by a path of Windows': [plugins('C:/x', '/b', '/c'), 'kubeletConfig.config'],
    'plugins without programs': [plugins('/a'), 'kubeletConfig.config'],
    'plugins by directory, without programs': [plugins(undefined, '/a'), 'kubeletConfig.configDir'],
    'programs without plugins': [plugins(undefined, undefined, '/a'), 'kubeletConfig.binDir'],
    plugins: [plugins('/a', undefined, '/c'), ''],
    'plugins by directory': [plugins(undefined, '/a', '/c'), ''],
    'plugins by relative paths': [
      plugins('a.json', undefined, 'c'),
      'kubeletConfig.config kubeletConfig.binDir',
      'agent',
    ],
    'plugins by a relative directory': [plugins('a.json', 'b', '/c'), 'kubeletConfig.configDir', 'agent'],
    "plugins by a person's relative paths": [plugins('a.json', undefined, 'c'), '', 'inspect'],
    'fallback without an architecture': [{ onUnknownImage: 'fallback' }, 'onUnknownImage'],
    'fallback with an architecture': [{ onUnknownImage: 'fallback', fallbackArchitecture: 'arm64' }, ''],
    'gate, set explicitly': [{ onUnknownImage: 'gate' }, '', 'webhook'],
    'two proxies of one registry': [
      { proxies: ['a', 'b', 'a'].map((registry) => ({ registry, endpoint: 'm' })) },
      'proxies.2',
    ],
    'agents by URL and by name': [{ agents: ['https://a', 'endpointslices:b/c'] }, 'agents'],
    'agents by two names': [{ agents: ['endpointslices:a/b', 'endpointslices:b/c'] }, 'agents'],
    'agents by name': [{ agents: ['endpointslices:b/c'] }, ''],
    'agents by URLs': [{ agents: ['https://a', 'https://b'] }, ''],
    'pullable nodes without agents': [{ requirePullableNodes: true }, 'requirePullableNodes', 'webhook'],
    'pullable nodes without agents, explain': [{ requirePullableNodes: true }, '', 'explain'],
    'pullable nodes with agents': [{ requirePullableNodes: true, agents: ['https://a'] }, '', 'webhook'],
  };
  for (const [name, [values, expected, part]] of Object.entries(cases)) {
    const found = inconsistencies({ ...defaultConfiguration(), ...values }, part);
    const keys = found.map(({ key, path = [] }) => [key, ...path].join('.'));
    t.equal(keys.join(' '), expected, name);
    for (const { message } of found) t.ok(message.length > 10, message);
  }
});
