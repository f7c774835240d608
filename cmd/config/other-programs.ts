/** The Multiarch Tuning Operator, archaware-controller and tolerable. Noe has a file of its own. */
import type { JsonObject } from '../../src/http/json.ts';
import {
  convertEach,
  dropped,
  noCounterpart,
  same,
  usesImage,
  within,
  type Note,
  type Origin,
} from './conversion.ts';

/** Fields of a spec that archwright's custom resource has too, by kind. */
const fieldsByKind: Readonly<Record<string, readonly string[]>> = {
  ClusterPodPlacementConfig: ['logVerbosity', 'namespaceSelector', 'fallbackArchitecture', 'plugins'],
  PodPlacementConfig: ['labelSelector', 'priority', 'plugins'],
};
const pluginNames = ['nodeAffinityScoring', 'execFormatErrorMonitor'];

const excludeLabel = 'multiarch.openshift.io/exclude-pod-placement';

/** Its two custom resources become archwright's, which have the same names. */
export const multiarchTuningOperator: Origin = {
  name: 'Multiarch Tuning Operator',
  recognizes: ({ apiVersion, kind }) =>
    typeof apiVersion === 'string' &&
    apiVersion.startsWith('multiarch.openshift.io/') &&
    typeof kind === 'string' &&
    Object.hasOwn(fieldsByKind, kind),
  convert: (document) => {
    const { kind } = document;
    const notes: Note[] = [];
    const spec = sharedFields(within(document, 'spec'), fieldsByKind[String(kind)] ?? [], 'spec', notes);
    if (spec['plugins'] !== undefined) {
      spec['plugins'] = sharedFields(within(spec, 'plugins'), pluginNames, 'spec.plugins', notes);
    }
    if (JSON.stringify(spec).includes(excludeLabel)) {
      notes.push({
        key: 'spec.namespaceSelector',
        text: `still reads the label ${excludeLabel}; the label arch.example/placement=disabled does the same without it`,
      });
    }
    // The API server wrote the rest of the metadata, or it belongs to the other operator.
    const { name, namespace } = within(document, 'metadata');
    const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
    const resource = { apiVersion: 'arch.example/v1alpha1', kind, metadata, spec };
    return { values: {}, resources: [resource], notes };
  },
};

function sharedFields(
  object: JsonObject,
  shared: readonly string[],
  path: string,
  notes: Note[],
): Record<string, unknown> {
  const fields = Object.entries(object);
  for (const [key] of fields) {
    if (!shared.includes(key)) notes.push({ key: `${path}.${key}`, text: noCounterpart });
  }
  return Object.fromEntries(fields.filter(([key]) => shared.includes(key)));
}

/** It has no configuration. */
export const archawareController: Origin = {
  name: 'archaware-controller',
  recognizes: (document) => usesImage(document, /archaware-controller(?::|@|$)/),
  convert: () => ({
    values: { taintArchitectures: ['*'], taintKey: 'supported-arch' },
    resources: [],
    notes: [
      {
        key: 'supported-arch',
        text: 'stays the key of the taint of each node, so that nodes and pods stay as they are; remove both values to set no taints',
      },
    ],
  }),
};

const certificates = dropped('certificates come from Secrets that the controller or cert-manager writes');

export const tolerable: Origin = {
  name: 'tolerable',
  recognizes: (document) =>
    ['supported_architectures', 'registry_credential_path', 'ssl_key_path'].some((key) =>
      Object.hasOwn(document, key),
    ),
  convert: (document) => {
    const converted = convertEach(document, {
      supported_architectures: same('schedulableArchitectures'),
      tolerations: (value, into) => into.set('tolerations', Array.isArray(value) ? value : [value]),
      registry_credential_path: (value, into) =>
        into.note(
          `is the directory of <registry>.toml files (${String(value)}): put each into a Secret and name it in registryCredentials`,
        ),
      ssl_key_path: certificates,
      ssl_cert_path: certificates,
    });
    return { ...converted, resources: [] };
  },
};
