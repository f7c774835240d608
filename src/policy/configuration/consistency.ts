/** Checks of settings against each other. */
import type { Part, Path } from '../settings/setting.ts';
import type { Configuration } from '../settings/all.ts';
import { absolutePathRule } from '../settings/images.ts';
import { brokenBy } from '../value-kinds/plain.ts';

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
  const { proxies, agents, requirePullableNodes } = configuration;
  const found = [...notSchedulable(configuration), ...incompletePlugins(configuration)];
  function add(key: keyof Configuration, message: string): void {
    found.push({ key, message });
  }
  if (preferredArchitecture !== undefined && Object.keys(preferredWeights).length > 0)
    add('preferredArchitecture', 'and preferredWeights are both set; set one of them');
  if (onUnknownImage === 'fallback' && fallbackArchitecture === undefined)
    add('onUnknownImage', 'is fallback, so fallbackArchitecture must be set');
  for (const [index, { registry }] of proxies.entries()) {
    if (proxies.findIndex((proxy) => proxy.registry === registry) === index) continue;
    found.push({ key: 'proxies', path: [index], message: `names a second proxy for ${registry}` });
  }
  if (agents.length > 1 && !agents.every((agent) => agent.startsWith('https://')))
    add('agents', 'must be URLs only, or a single endpointslices: location');
  if (part === 'agent') found.push(...relativePlugins(configuration));
  if (part === 'webhook' && requirePullableNodes && agents.length === 0)
    add('requirePullableNodes', 'needs agents, so agents must be set');
  return found;
}

/** A pod that requires an architecture without nodes would stay pending. */
function notSchedulable(configuration: Configuration): Inconsistency[] {
  const { schedulableArchitectures, preferredArchitecture, preferredWeights, fallbackArchitecture } =
    configuration;
  if (schedulableArchitectures.length === 0) return [];
  const known = schedulableArchitectures.join(', ');
  const named: (readonly [key: keyof Configuration, architecture: string | undefined, path: Path])[] = [
    ['preferredArchitecture', preferredArchitecture, []],
    ['fallbackArchitecture', fallbackArchitecture, []],
    ...Object.keys(preferredWeights).map((name) => ['preferredWeights', name, [name]] as const),
  ];
  return named
    .filter(([, name]) => name !== undefined && !schedulableArchitectures.includes(name))
    .map(([key, name, path]) => ({
      key,
      path,
      message: `names ${name}, which is not one of schedulableArchitectures (${known})`,
    }));
}

/** No path, and neither `.` nor `..`. The chart has the same. */
const fileName = /^[\w.-]*[\w-][\w.-]*$/;

/**
 * The kubelet's flag names a file or a directory, and needs the directory of the plugins with it. A relative
 * file is one in `configDir`, as in Noe's values.
 */
function incompletePlugins(configuration: Configuration): Inconsistency[] {
  const { 'kubeletConfig.config': file, 'kubeletConfig.configDir': dir } = configuration;
  const hasPrograms = configuration['kubeletConfig.binDir'] !== undefined;
  const key = file === undefined ? 'kubeletConfig.configDir' : 'kubeletConfig.config';
  if (file?.startsWith('/') && dir !== undefined)
    return [{ key, message: 'is a whole path, and kubeletConfig.configDir is set too; set one of them' }];
  if (file !== undefined && dir !== undefined && !fileName.test(file)) {
    const message = `must be the name of a file in kubeletConfig.configDir, not ${JSON.stringify(file)}`;
    return [{ key, message }];
  }
  const hasConfiguration = (file ?? dir) !== undefined;
  if (hasConfiguration === hasPrograms) return [];
  if (hasConfiguration) return [{ key, message: 'needs kubeletConfig.binDir, the directory of the plugins' }];
  const message = 'needs kubeletConfig.config or kubeletConfig.configDir';
  return [{ key: 'kubeletConfig.binDir', message }];
}

/** A person's paths are relative to the working directory. An agent has none on its node. */
function relativePlugins(configuration: Configuration): Inconsistency[] {
  const isInDirectory = configuration['kubeletConfig.configDir'] !== undefined;
  const directories = ['kubeletConfig.configDir', 'kubeletConfig.binDir'] as const;
  const keys = isInDirectory ? directories : (['kubeletConfig.config', ...directories] as const);
  return keys.flatMap((key) => {
    const path = configuration[key];
    const message = path === undefined ? undefined : brokenBy(absolutePathRule, path);
    return message === undefined ? [] : [{ key, message }];
  });
}
