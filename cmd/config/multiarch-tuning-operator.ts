/** The Multiarch Tuning Operator: its two custom resources become ours, which have the same names. */
import { isObject, type JsonObject } from '../../src/webhook/validate-pod.ts';
import type { Note, Origin } from './converted.ts';

const group = 'multiarch.openshift.io/';
const kinds = new Set(['ClusterPodPlacementConfig', 'PodPlacementConfig']);

/** Fields of a spec that ours has too. */
const clusterFields = ['logVerbosity', 'namespaceSelector', 'fallbackArchitecture', 'plugins'];
const namespacedFields = ['labelSelector', 'priority', 'plugins'];
const plugins = new Set(['nodeAffinityScoring', 'execFormatErrorMonitor']);

/** The label by which namespaces are left out there. */
const excludeLabel = 'multiarch.openshift.io/exclude-pod-placement';

export const multiarchTuningOperator: Origin = {
  name: 'Multiarch Tuning Operator',
  recognizes: ({ apiVersion, kind }) =>
    typeof apiVersion === 'string' &&
    apiVersion.startsWith(group) &&
    typeof kind === 'string' &&
    kinds.has(kind),
  convert: (document) => {
    const notes: Note[] = [];
    const isCluster = document['kind'] === 'ClusterPodPlacementConfig';
    const spec = isObject(document['spec']) ? document['spec'] : {};
    const kept: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(spec)) {
      if (!(isCluster ? clusterFields : namespacedFields).includes(key)) {
        notes.push({ key: `spec.${key}`, text: 'has no counterpart and is left out' });
      } else kept[key] = key === 'plugins' ? pluginsOf(value, notes) : value;
    }
    if (JSON.stringify(kept).includes(excludeLabel)) {
      notes.push({
        key: 'spec.namespaceSelector',
        text: `goes on reading the label ${excludeLabel}; the label arch.example/placement=disabled does the same without it`,
      });
    }
    const resource: JsonObject = {
      apiVersion: 'arch.example/v1alpha1',
      kind: document['kind'],
      metadata: metadataOf(document['metadata']),
      spec: kept,
    };
    return { values: {}, resources: [resource], notes };
  },
};

/** What the API server wrote, and what belongs to the other operator, stays behind. */
function metadataOf(metadata: unknown): JsonObject {
  if (!isObject(metadata)) return {};
  const { name, namespace } = metadata;
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

function pluginsOf(value: unknown, notes: Note[]): JsonObject {
  if (!isObject(value)) return {};
  const unknown = Object.keys(value).filter((key) => !plugins.has(key));
  for (const key of unknown)
    notes.push({ key: `spec.plugins.${key}`, text: 'has no counterpart and is left out' });
  return Object.fromEntries(Object.entries(value).filter(([key]) => plugins.has(key)));
}
