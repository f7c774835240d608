/**
 * Parses the custom resources. Unknown fields are ignored, because a newer definition may have them. An object with an invalid
 * value in a known field is ignored as a whole.
 */
import type { KubeObject } from '../../kube/api/objects.ts';
import { isRecord } from '../../names/architecture.ts';
import { readSelector } from '../effective/label-selector.ts';
import {
  constraintsValues,
  onNoCommonArchitectureValues,
  onUnknownImageValues,
} from '../effective/policy.ts';
import { field, isArchitecture, isIntegerWithin, isUnset, section, type Fields } from './fields.ts';
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
  const spec = section(object as Fields, 'spec', problems);
  const plugins = section(spec, 'spec.plugins', problems);
  const monitor = section(plugins, 'spec.plugins.execFormatErrorMonitor', problems);
  if (object.metadata?.name !== clusterConfigName)
    problems.push(`metadata.name must be ${clusterConfigName}`);
  const preferred = architecture(spec, 'preferredArchitecture', problems);
  const scored = scoring(plugins, problems);
  if (preferred !== undefined && scored !== undefined)
    problems.push('spec.preferredArchitecture and spec.plugins.nodeAffinityScoring are both set');
  const namespaces = spec['namespaceSelector'];
  const placement: ClusterPlacement = {
    deleting: object.metadata?.deletionTimestamp !== undefined,
    logVerbosity: oneOf(spec, 'spec.logVerbosity', logVerbosities, problems),
    namespaceSelector: isUnset(namespaces)
      ? undefined
      : readSelector(namespaces, 'spec.namespaceSelector', problems),
    fallbackArchitecture: architecture(spec, 'fallbackArchitecture', problems),
    weights: preferred === undefined ? scored : { [preferred]: maxWeight },
    execFormatErrorMonitor: enabled(monitor, 'spec.plugins.execFormatErrorMonitor', problems),
    constraints: oneOf(spec, 'spec.constraints', constraintsValues, problems),
  };
  return problems.length > 0 ? { problems } : { placement, problems: [] };
}

/** Reads a `PodPlacementConfig`. Never throws. */
export function readPodConfig(object: KubeObject): Reading<PodPlacement> {
  const problems: string[] = [];
  const { name = '', namespace = '', creationTimestamp = '' } = object.metadata ?? {};
  const spec = section(object as Fields, 'spec', problems);
  const plugins = section(spec, 'spec.plugins', problems);
  const selector = spec['labelSelector'];
  const placement: PodPlacement = {
    namespace,
    name,
    createdAt: Date.parse(creationTimestamp) || 0,
    priority: priorityOf(spec, problems),
    selector: isUnset(selector) ? [] : readSelector(selector, 'spec.labelSelector', problems),
    fallbackArchitecture: architecture(spec, 'fallbackArchitecture', problems),
    ...architectures(spec, problems),
    weights: scoring(plugins, problems),
    onUnknownImage: oneOf(spec, 'spec.onUnknownImage', onUnknownImageValues, problems),
    onNoCommonArchitecture: oneOf(
      spec,
      'spec.onNoCommonArchitecture',
      onNoCommonArchitectureValues,
      problems,
    ),
    constraints: oneOf(spec, 'spec.constraints', constraintsValues, problems),
  };
  return problems.length > 0 ? { problems } : { placement, problems: [] };
}

function oneOf<T extends string>(
  spec: Fields,
  path: string,
  values: readonly T[],
  problems: string[],
): T | undefined {
  const is = (value: unknown): value is T => values.some((candidate) => candidate === value);
  return field(spec, path, is, `one of ${values.join(', ')}`, problems);
}

function architecture(spec: Fields, key: string, problems: string[]): string | undefined {
  const value = spec[key];
  if (isUnset(value)) return undefined;
  return isArchitecture(value, `spec.${key}`, problems) ? value : undefined;
}

function architectures(spec: Fields, problems: string[]): { readonly architectures?: readonly string[] } {
  const value = spec['architectures'];
  if (isUnset(value)) return {};
  if (!Array.isArray(value) || value.length === 0 || value.length > maxPlatforms) {
    problems.push(`spec.architectures must be a list of 1 to ${maxPlatforms}`);
    return {};
  }
  const names = value.filter((name: unknown, index): name is string =>
    isArchitecture(name, `spec.architectures[${index}]`, problems),
  );
  if (new Set(names).size < names.length) problems.push('spec.architectures names one a second time');
  return { architectures: names.toSorted() };
}

function priorityOf(spec: Fields, problems: string[]): number {
  const is = (value: unknown): value is number => isIntegerWithin(value, 0, maxPriority);
  return field(spec, 'spec.priority', is, `a whole number from 0 to ${maxPriority}`, problems) ?? 0;
}

function enabled(plugin: Fields, path: string, problems: string[]): boolean | undefined {
  const is = (value: unknown): value is boolean => typeof value === 'boolean';
  return field(plugin, `${path}.enabled`, is, 'true or false', problems);
}

/** @returns `undefined` if the plugin is off */
function scoring(plugins: Fields, problems: string[]): Readonly<Record<string, number>> | undefined {
  const path = 'spec.plugins.nodeAffinityScoring';
  const plugin = section(plugins, path, problems);
  const isOn = enabled(plugin, path, problems) === true;
  const platforms = plugin['platforms'] ?? [];
  if (!Array.isArray(platforms) || platforms.length > maxPlatforms) {
    problems.push(`${path}.platforms must be a list of at most ${maxPlatforms}`);
    return undefined;
  }
  if (isOn && platforms.length === 0)
    problems.push(`${path}.platforms must not be empty where it is enabled`);
  const weights = new Map<string, number>();
  for (const [index, platform] of platforms.entries()) {
    const place = `${path}.platforms[${index}]`;
    const { architecture: name, weight }: Fields = isRecord(platform) ? platform : {};
    if (!isArchitecture(name, `${place}.architecture`, problems)) continue;
    if (!isIntegerWithin(weight, 1, maxWeight))
      problems.push(`${place}.weight must be a whole number from 1 to ${maxWeight}`);
    else if (weights.has(name)) problems.push(`${place} names ${name} a second time`);
    else weights.set(name, weight);
  }
  return isOn ? Object.fromEntries(weights) : undefined;
}
