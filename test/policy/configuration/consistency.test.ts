import t from 'tap';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { inconsistencies } from '../../../src/policy/configuration/consistency.ts';
import type { Part } from '../../../src/policy/settings/setting.ts';

t.test('settings that contradict each other', async (t) => {
  const two = { schedulableArchitectures: ['amd64', 'arm64'] };
  const cases: [string, Partial<Configuration>, Part | undefined, string[]][] = [
    ['nothing', {}, 'webhook', []],
    ['preferred', { ...two, preferredArchitecture: 'arm64' }, undefined, []],
    ['preferred elsewhere', { ...two, preferredArchitecture: 's390x' }, undefined, ['preferredArchitecture']],
    ['preferred, any schedulable', { preferredArchitecture: 's390x' }, undefined, []],
    ['weights', { ...two, preferredWeights: { arm64: 1, amd64: 2 } }, undefined, []],
    [
      'weights elsewhere',
      { ...two, preferredWeights: { arm64: 1, arm: 2, s390x: 3 } },
      undefined,
      ['preferredWeights.arm', 'preferredWeights.s390x'],
    ],
    ['fallback', { ...two, fallbackArchitecture: 'amd64' }, undefined, []],
    ['fallback elsewhere', { ...two, fallbackArchitecture: 'arm' }, undefined, ['fallbackArchitecture']],
    [
      'two preferences',
      { preferredArchitecture: 'arm64', preferredWeights: { arm64: 1 } },
      undefined,
      ['preferredArchitecture'],
    ],
    [
      'plugins by file and by directory',
      { 'kubeletConfig.config': '/a', 'kubeletConfig.configDir': '/b', 'kubeletConfig.binDir': '/c' },
      undefined,
      ['kubeletConfig.config'],
    ],
    ['plugins without programs', { 'kubeletConfig.config': '/a' }, undefined, ['kubeletConfig.config']],
    ['the same by directory', { 'kubeletConfig.configDir': '/a' }, undefined, ['kubeletConfig.configDir']],
    ['programs without plugins', { 'kubeletConfig.binDir': '/a' }, undefined, ['kubeletConfig.binDir']],
    ['plugins', { 'kubeletConfig.config': '/a', 'kubeletConfig.binDir': '/c' }, undefined, []],
    [
      'plugins by directory',
      { 'kubeletConfig.configDir': '/a', 'kubeletConfig.binDir': '/c' },
      undefined,
      [],
    ],
    ['fallback without one', { onUnknownImage: 'fallback' }, undefined, ['onUnknownImage']],
    ['fallback with one', { onUnknownImage: 'fallback', fallbackArchitecture: 'arm64' }, undefined, []],
    ['gate as asked for', { onUnknownImage: 'gate' }, 'webhook', []],
    [
      'two proxies of one registry',
      { proxies: ['a', 'b', 'a'].map((registry) => ({ registry, endpoint: 'm' })) },
      undefined,
      ['proxies.2'],
    ],
    ['agents by URL and by name', { agents: ['https://a', 'dns:b:1'] }, undefined, ['agents']],
    ['agents by two names', { agents: ['dns:a:1', 'dns:b:1'] }, undefined, ['agents']],
    ['agents by name', { agents: ['dns:b:1'] }, undefined, []],
    ['agents by URLs', { agents: ['https://a', 'https://b'] }, undefined, []],
    ['agents without TLS', { agents: ['https://a'] }, 'webhook', ['agents']],
    ['explain too', { agents: ['https://a'] }, 'explain', ['agents']],
    ['agents with TLS', { agents: ['https://a'], agentTlsDir: '/tls' }, 'webhook', []],
    ['for a part that asks no agents', { agents: ['https://a'] }, 'agent', []],
    ['pullable nodes without agents', { requirePullableNodes: true }, 'webhook', ['requirePullableNodes']],
    ['a person may look without agents', { requirePullableNodes: true }, 'explain', []],
    [
      'pullable nodes with agents',
      { requirePullableNodes: true, agents: ['https://a'], agentTlsDir: '/tls' },
      'webhook',
      [],
    ],
    ['of the controller too', { agents: ['https://a'] }, 'controller', ['agents']],
    [
      'a deadline after the end of the Lease',
      { leaseDuration: 10_000 },
      'controller',
      ['leaseRenewDeadline'],
    ],
    ['no time for two tries', { leaseRetryPeriod: 9000 }, 'controller', ['leaseRetryPeriod']],
    ['just enough', { leaseRetryPeriod: 8000, leaseDuration: 10_001 }, 'controller', []],
    ['the Lease of others', { leaseDuration: 1000 }, 'webhook', []],
    ['for no part', { agents: ['https://a'] }, undefined, []],
  ];
  for (const [name, values, part, expected] of cases) {
    const found = inconsistencies({ ...defaultConfiguration(), ...values }, part);
    t.same(
      found.map(({ key, path = [] }) => [key, ...path].join('.')),
      expected,
      name,
    );
    for (const { message } of found) t.ok(message.length > 10, message);
  }
});
