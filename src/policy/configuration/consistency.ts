/** Checks of settings against each other. */
import type { Part, Path } from '../settings/setting.ts';
import type { Configuration } from '../settings/all.ts';

export interface Inconsistency {
  readonly key: keyof Configuration;
  /** Place inside the value. */
  readonly path?: Path;
  readonly message: string;
}

/**
 * Finds settings that contradict each other.
 * @param part the part that will run; if absent, only problems of every part are found
 */
export function inconsistencies(configuration: Configuration, part?: Part): Inconsistency[] {
  return [
    ...notSchedulable(configuration),
    ...twoPreferences(configuration),
    ...noFallback(configuration),
    ...twoProxies(configuration),
    ...mixedAgents(configuration),
    ...incompletePlugins(configuration),
    ...(part === 'webhook' || part === 'explain' || part === 'controller'
      ? agentsWithoutTls(configuration)
      : []),
    ...(part === 'controller' ? leaseTimes(configuration) : []),
    ...(part === 'webhook' ? noAgentsForNodes(configuration) : []),
  ];
}

/** A leader must stop before another one can take over, and needs time for more than one attempt (client-go). */
function leaseTimes(configuration: Configuration): Inconsistency[] {
  const { leaseDuration, leaseRenewDeadline, leaseRetryPeriod } = configuration;
  return [
    ...(leaseRenewDeadline < leaseDuration
      ? []
      : [{ key: 'leaseRenewDeadline' as const, message: 'must be shorter than leaseDuration' }]),
    ...(leaseRetryPeriod * 1.2 < leaseRenewDeadline
      ? []
      : [{ key: 'leaseRetryPeriod' as const, message: 'times 1.2 must be shorter than leaseRenewDeadline' }]),
  ];
}

/** A pod that requires an architecture without nodes would stay pending. */
function notSchedulable(configuration: Configuration): Inconsistency[] {
  const { schedulableArchitectures, preferredArchitecture, preferredWeights, fallbackArchitecture } =
    configuration;
  if (schedulableArchitectures.length === 0) return [];
  const named: { key: keyof Configuration; path: Path; architecture: string | undefined }[] = [
    { key: 'preferredArchitecture', path: [], architecture: preferredArchitecture },
    { key: 'fallbackArchitecture', path: [], architecture: fallbackArchitecture },
    ...Object.keys(preferredWeights).map((architecture) => ({
      key: 'preferredWeights' as const,
      path: [architecture],
      architecture,
    })),
  ];
  return named.flatMap(({ key, path, architecture }) =>
    architecture === undefined || schedulableArchitectures.includes(architecture)
      ? []
      : [
          {
            key,
            path,
            message: `names ${architecture}, which is not one of schedulableArchitectures (${schedulableArchitectures.join(', ')})`,
          },
        ],
  );
}

function twoPreferences(configuration: Configuration): Inconsistency[] {
  const { preferredArchitecture, preferredWeights } = configuration;
  if (preferredArchitecture === undefined || Object.keys(preferredWeights).length === 0) return [];
  return [{ key: 'preferredArchitecture', message: 'and preferredWeights are both set; set one of them' }];
}

function noFallback(configuration: Configuration): Inconsistency[] {
  if (configuration.onUnknownImage !== 'fallback' || configuration.fallbackArchitecture !== undefined)
    return [];
  return [{ key: 'onUnknownImage', message: 'is fallback, so fallbackArchitecture must be set' }];
}

function twoProxies({ proxies }: Configuration): Inconsistency[] {
  return proxies.flatMap(({ registry }, index) =>
    proxies.findIndex((proxy) => proxy.registry === registry) === index
      ? []
      : [{ key: 'proxies', path: [index], message: `names a second proxy for ${registry}` }],
  );
}

function mixedAgents({ agents }: Configuration): Inconsistency[] {
  const places = agents.filter((agent) => !agent.startsWith('https://'));
  if (places.length === 0 || agents.length === 1) return [];
  return [{ key: 'agents', message: 'must be URLs only, or a single dns: or endpointslices: location' }];
}

function agentsWithoutTls(configuration: Configuration): Inconsistency[] {
  if (configuration.agents.length === 0 || configuration.agentTlsDir !== undefined) return [];
  return [{ key: 'agents', message: 'need mutual TLS, so agentTlsDir must be set' }];
}

function noAgentsForNodes({ requirePullableNodes, agents }: Configuration): Inconsistency[] {
  if (!requirePullableNodes || agents.length > 0) return [];
  return [{ key: 'requirePullableNodes', message: 'needs agents, so agents must be set' }];
}

/** The kubelet takes one of the two configurations, and needs the directory of the plugins with it. */
function incompletePlugins(configuration: Configuration): Inconsistency[] {
  const { 'kubeletConfig.config': file, 'kubeletConfig.configDir': dir } = configuration;
  const binDir = configuration['kubeletConfig.binDir'];
  if (file !== undefined && dir !== undefined) {
    return [
      { key: 'kubeletConfig.config', message: 'and kubeletConfig.configDir are both set; set one of them' },
    ];
  }
  if (binDir === undefined && (file ?? dir) !== undefined) {
    const key = file === undefined ? 'kubeletConfig.configDir' : 'kubeletConfig.config';
    return [{ key, message: 'needs kubeletConfig.binDir, the directory of the plugins' }];
  }
  if (binDir !== undefined && (file ?? dir) === undefined) {
    return [
      { key: 'kubeletConfig.binDir', message: 'needs kubeletConfig.config or kubeletConfig.configDir' },
    ];
  }
  return [];
}
