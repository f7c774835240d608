/**
 * Parses the custom resources. Unknown fields are ignored, because a newer definition may have them. An
 * object with an invalid value in a known field is ignored as a whole.
 */
import type { KubeObject } from '../../kube/api/objects.ts';
import { timeOf } from '../../kube/api/fields.ts';
import { isRecord } from '../../names/values.ts';
import {
  constraintsValues,
  onNoCommonArchitectureValues,
  onUnknownImageValues,
} from '../effective/policy.ts';
import { Fields, isIntegerWithin } from './fields.ts';
import {
  clusterConfigName,
  logVerbosities,
  type ClusterPlacement,
  type PodPlacement,
  type Reading,
} from './placement.ts';

/** The limit of a placement, also in the definitions. */
export const maxPlatforms = 16;
export const maxPriority = 255;
const maxWeight = 100;

/** Reads a `ClusterPodPlacementConfig`. Never throws. */
export function readClusterConfig(object: KubeObject): Reading<ClusterPlacement> {
  const problems: string[] = [];
  const spec = new Fields(object, problems).section('spec');
  const plugins = spec.section('plugins');
  const monitor = plugins.section('execFormatErrorMonitor');
  if (object.metadata?.name !== clusterConfigName)
    problems.push(`metadata.name must be ${clusterConfigName}`);
  const preferred = spec.architecture('preferredArchitecture');
  const scored = scoring(plugins);
  if (preferred !== undefined && scored !== undefined)
    problems.push('spec.preferredArchitecture and spec.plugins.nodeAffinityScoring are both set');
  const placement: ClusterPlacement = {
    logVerbosity: spec.oneOf('logVerbosity', logVerbosities),
    namespaceSelector: spec.selector('namespaceSelector'),
    fallbackArchitecture: spec.architecture('fallbackArchitecture'),
    weights: preferred === undefined ? scored : { [preferred]: maxWeight },
    execFormatErrorMonitor: monitor.boolean('enabled'),
    constraints: spec.oneOf('constraints', constraintsValues),
  };
  return problems.length > 0 ? { problems } : { placement, problems: [] };
}

/** Reads a `PodPlacementConfig`. Never throws. */
export function readPodConfig(object: KubeObject): Reading<PodPlacement> {
  const problems: string[] = [];
  const metadata = object.metadata ?? {};
  const spec = new Fields(object, problems).section('spec');
  const placement: PodPlacement = {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    createdAt: timeOf(metadata.creationTimestamp),
    priority: spec.integer('priority', 0, maxPriority) ?? 0,
    selector: spec.selector('labelSelector') ?? [],
    fallbackArchitecture: spec.architecture('fallbackArchitecture'),
    ...architectures(spec),
    weights: scoring(spec.section('plugins')),
    onUnknownImage: spec.oneOf('onUnknownImage', onUnknownImageValues),
    onNoCommonArchitecture: spec.oneOf('onNoCommonArchitecture', onNoCommonArchitectureValues),
    constraints: spec.oneOf('constraints', constraintsValues),
  };
  return problems.length > 0 ? { problems } : { placement, problems: [] };
}

function architectures(spec: Fields): { readonly architectures?: readonly string[] } {
  const value = spec.raw('architectures');
  if (value === undefined) return {};
  if (!Array.isArray(value) || value.length === 0 || value.length > maxPlatforms)
    return spec.problem('architectures', `must be a list of 1 to ${maxPlatforms}`) ?? {};
  const names = value.filter((name: unknown, index): name is string =>
    spec.isArchitecture(name, `architectures[${index}]`),
  );
  if (new Set(names).size < names.length) spec.problem('architectures', 'names one twice');
  return { architectures: names.toSorted() };
}

/** @returns `undefined` if the plugin is off */
function scoring(plugins: Fields): Readonly<Record<string, number>> | undefined {
  const plugin = plugins.section('nodeAffinityScoring');
  const isOn = plugin.boolean('enabled') === true;
  const platforms = plugin.raw('platforms') ?? [];
  if (!Array.isArray(platforms) || platforms.length > maxPlatforms)
    return plugin.problem('platforms', `must be a list of at most ${maxPlatforms}`);
  if (isOn && platforms.length === 0) plugin.problem('platforms', 'must not be empty if it is enabled');
  const weights = new Map<string, number>();
  for (const [index, platform] of platforms.entries()) {
    const place = `platforms[${index}]`;
    const { architecture: name, weight } = isRecord(platform) ? platform : {};
    if (!plugin.isArchitecture(name, `${place}.architecture`)) continue;
    if (!isIntegerWithin(weight, 1, maxWeight))
      plugin.problem(`${place}.weight`, `must be a whole number from 1 to ${maxWeight}`);
    else if (weights.has(name)) plugin.problem(place, `names ${name} twice`);
    else weights.set(name, weight);
  }
  return isOn ? Object.fromEntries(weights) : undefined;
}
