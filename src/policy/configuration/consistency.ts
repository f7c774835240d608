/** Checks of settings against each other. */
import type { Part, Path } from '../settings/setting.ts';
import type { Configuration } from '../settings/all.ts';

export interface Inconsistency {
  readonly key: keyof Configuration;
  readonly message: string;
  readonly path?: Path;
}

/**
 * Finds settings that contradict each other.
 * @param part the part that will run; if absent, only problems of every part are found
 */
export function inconsistencies(configuration: Configuration, part?: Part): Inconsistency[] {
  const { onUnknownImage, fallbackArchitecture, preferredArchitecture, preferredWeights } = configuration;
  const { proxies, agents, agentTlsDir, requirePullableNodes } = configuration;
  const found = notSchedulable(configuration);
  function check(isWrong: boolean, key: keyof Configuration, message: string): void {
    if (isWrong) found.push({ key, message });
  }
  const twoPreferences = preferredArchitecture !== undefined && Object.keys(preferredWeights).length > 0;
  check(twoPreferences, 'preferredArchitecture', 'and preferredWeights are both set; set one of them');
  const noFallback = onUnknownImage === 'fallback' && fallbackArchitecture === undefined;
  check(noFallback, 'onUnknownImage', 'is fallback, so fallbackArchitecture must be set');
  for (const [index, { registry }] of proxies.entries()) {
    if (proxies.findIndex((proxy) => proxy.registry === registry) === index) continue;
    found.push({ key: 'proxies', path: [index], message: `names a second proxy for ${registry}` });
  }
  const mixedAgents = agents.length > 1 && !agents.every((agent) => agent.startsWith('https://'));
  check(mixedAgents, 'agents', 'must be URLs only, or a single dns: or endpointslices: location');
  found.push(...incompletePlugins(configuration));
  if (part === 'webhook' || part === 'explain' || part === 'controller') {
    const noTls = agents.length > 0 && agentTlsDir === undefined;
    check(noTls, 'agents', 'need mutual TLS, so agentTlsDir must be set');
  }
  if (part === 'controller') {
    // A leader must stop before another one can take over, and needs time for more than one attempt (client-go).
    const { leaseDuration, leaseRenewDeadline: deadline, leaseRetryPeriod } = configuration;
    check(deadline >= leaseDuration, 'leaseRenewDeadline', 'must be shorter than leaseDuration');
    const isSlow = leaseRetryPeriod * 1.2 >= deadline;
    check(isSlow, 'leaseRetryPeriod', 'times 1.2 must be shorter than leaseRenewDeadline');
  }
  const noAgents = part === 'webhook' && requirePullableNodes && agents.length === 0;
  check(noAgents, 'requirePullableNodes', 'needs agents, so agents must be set');
  return found;
}

/** A pod that requires an architecture without nodes would stay pending. */
function notSchedulable(configuration: Configuration): Inconsistency[] {
  const { schedulableArchitectures, preferredArchitecture, preferredWeights, fallbackArchitecture } =
    configuration;
  if (schedulableArchitectures.length === 0) return [];
  const known = schedulableArchitectures.join(', ');
  const named: [key: keyof Configuration, architecture: string | undefined, path: Path][] = [
    ['preferredArchitecture', preferredArchitecture, []],
    ['fallbackArchitecture', fallbackArchitecture, []],
    ...Object.keys(preferredWeights).map((name): [keyof Configuration, string, Path] => [
      'preferredWeights',
      name,
      [name],
    ]),
  ];
  return named
    .filter(([, name]) => name !== undefined && !schedulableArchitectures.includes(name))
    .map(([key, name, path]) => ({
      key,
      path,
      message: `names ${name}, which is not one of schedulableArchitectures (${known})`,
    }));
}

/** The kubelet takes one of the two configurations, and needs the directory of the plugins with it. */
function incompletePlugins(configuration: Configuration): Inconsistency[] {
  const { 'kubeletConfig.config': file, 'kubeletConfig.configDir': dir } = configuration;
  const hasPrograms = configuration['kubeletConfig.binDir'] !== undefined;
  const key = file === undefined ? 'kubeletConfig.configDir' : 'kubeletConfig.config';
  if (file !== undefined && dir !== undefined) {
    return [{ key, message: 'and kubeletConfig.configDir are both set; set one of them' }];
  }
  const hasConfiguration = (file ?? dir) !== undefined;
  if (hasConfiguration === hasPrograms) return [];
  return hasConfiguration
    ? [{ key, message: 'needs kubeletConfig.binDir, the directory of the plugins' }]
    : [{ key: 'kubeletConfig.binDir', message: 'needs kubeletConfig.config or kubeletConfig.configDir' }];
}
