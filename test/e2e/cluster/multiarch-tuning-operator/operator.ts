/**
 * The Multiarch Tuning Operator 1.3.4, as far as a test can restate it (openshift/multiarch-tuning-operator):
 * its definitions, its gate on new pods, its affinity, and the order in which it leaves.
 */
import type { Test } from 'tap';
import { stringify } from 'yaml';
import { guardedPatch } from '../../../../src/kube/api/change.ts';
import { ignoring } from '../../../../src/kube/api/errors.ts';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import { until } from '../../../support/until.ts';
import { tryPod } from '../archwright/archwright.ts';
import { define } from '../control-plane/definitions.ts';
import { podPath, type PodNow } from '../control-plane/pods.ts';
import type { Cluster } from '../harness.ts';

export const operatorGate = 'multiarch.openshift.io/scheduling-gate';
const finalizer = 'finalizers.multiarch.openshift.io/pod-placement';
const group = '/apis/multiarch.openshift.io/v1beta1';
export const operatorConfig = `${group}/clusterpodplacementconfigs/cluster`;
const admission = '/apis/admissionregistration.k8s.io/v1';

const architectures = ['arm64', 'amd64', 'ppc64le', 's390x'];
const text = { type: 'string' };
const flag = { type: 'boolean' };
const selector = {
  type: 'object',
  properties: {
    matchLabels: { type: 'object', additionalProperties: text },
    matchExpressions: {
      type: 'array',
      items: {
        type: 'object',
        required: ['key', 'operator'],
        properties: { key: text, operator: text, values: { type: 'array', items: text } },
      },
    },
  },
};
const scoring = {
  type: 'object',
  required: ['enabled', 'platforms'],
  properties: {
    enabled: flag,
    platforms: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['architecture', 'weight'],
        properties: {
          architecture: { ...text, enum: architectures },
          weight: { type: 'integer', minimum: 1, maximum: 100 },
        },
      },
    },
  },
};
const clusterFields = {
  logVerbosity: { ...text, default: 'Normal', enum: ['Normal', 'Debug', 'Trace', 'TraceAll'] },
  namespaceSelector: selector,
  // The API server writes the default into every object.
  fallbackArchitecture: { ...text, default: '', enum: [...architectures, ''] },
  plugins: {
    type: 'object',
    properties: {
      nodeAffinityScoring: scoring,
      execFormatErrorMonitor: { type: 'object', required: ['enabled'], properties: { enabled: flag } },
    },
  },
};
const podFields = {
  labelSelector: selector,
  priority: { type: 'integer', default: 0, minimum: 0, maximum: 255 },
  plugins: { type: 'object', properties: { nodeAffinityScoring: scoring } },
};

function definitionOf(kind: string, scope: 'Cluster' | 'Namespaced', fields: object): string {
  const singular = kind.toLowerCase();
  const status = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const properties = { spec: { type: 'object', properties: fields }, status };
  return stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.multiarch.openshift.io` },
    spec: {
      group: 'multiarch.openshift.io',
      names: { kind, plural: `${singular}s`, singular },
      scope,
      versions: [
        {
          name: 'v1beta1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties } },
        },
      ],
    },
  });
}

/**
 * Installs and runs it, for the namespace `default`.
 * @param architecturesOf what it knows of an image
 * @param configs specs of its two kinds
 */
export async function startOperator(
  t: Test,
  cluster: Cluster,
  architecturesOf: (image: string) => readonly string[],
  configs: { readonly cluster: object; readonly pods: object },
) {
  await define(cluster, definitionOf('ClusterPodPlacementConfig', 'Cluster', clusterFields));
  await define(cluster, definitionOf('PodPlacementConfig', 'Namespaced', podFields));
  const apiVersion = 'multiarch.openshift.io/v1beta1';
  const metadata = { name: 'cluster', finalizers: [finalizer] };
  await cluster.create({ apiVersion, kind: 'ClusterPodPlacementConfig', metadata, spec: configs.cluster });
  const name = 'batch';
  await cluster.create({ apiVersion, kind: 'PodPlacementConfig', metadata: { name }, spec: configs.pods });
  await gateNewPods(cluster);
  await untilGating(cluster, true);

  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  const works = new Set<Promise<void>>();
  let isRunning = true;
  const place = async (pod: Pod): Promise<void> => {
    const operations = placing(pod, architecturesOf(pod.spec.containers[0]?.image ?? ''));
    const patch = guardedPatch(pod, operations);
    // After a conflict, the next change of the pod is seen.
    await ignoring(['not-found', 'conflict'], cluster.patch(podPath(pod.metadata?.name ?? ''), patch));
  };
  const look = (pod: Pod): void => {
    if (!isRunning || gateIndex(pod) < 0) return;
    const work = place(pod).finally(() => works.delete(work));
    works.add(work);
  };
  for (const pod of pods.objects.values()) look(pod);
  pods.onChange(({ type, object }) => {
    if (type !== 'DELETED') look(object);
  });
  const stop = async (): Promise<void> => {
    isRunning = false;
    await Promise.all(works);
  };
  return {
    /** Ends at once, and leaves what is there. */
    stop,
    /** Follows the deletion of its configuration: no gate any more, then none left, then the finalizer. */
    leave: async (): Promise<void> => {
      await cluster.waitFor(operatorConfig, (now) => now?.metadata?.deletionTimestamp !== undefined);
      const others = await cluster.list(`${group}/podplacementconfigs`);
      if (others.length > 0) throw new Error('it waits for the deletion of its PodPlacementConfigs');
      for (const kind of ['mutatingadmissionpolicybindings', 'mutatingadmissionpolicies'])
        await cluster.delete(`${admission}/${kind}/pod-placement`);
      await untilGating(cluster, false);
      await pods.until('no pod has its gate', (now) => [...now.values()].every((pod) => gateIndex(pod) < 0));
      await cluster.merge(operatorConfig, { metadata: { finalizers: null } });
      await stop();
    },
  };
}

/** A policy instead of its webhook. */
async function gateNewPods(cluster: Cluster): Promise<void> {
  const gate = `Object.spec.schedulingGates{name: "${operatorGate}"}`;
  const expression = `Object{spec: Object.spec{schedulingGates: [${gate}]}}`;
  await cluster.make('MutatingAdmissionPolicy', 'pod-placement', {
    spec: {
      reinvocationPolicy: 'Never',
      failurePolicy: 'Fail',
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } },
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
    },
  });
  await cluster.make('MutatingAdmissionPolicyBinding', 'pod-placement', {
    spec: { policyName: 'pod-placement' },
  });
}

/** The API server follows a policy some moments later. */
async function untilGating(cluster: Cluster, wanted: boolean): Promise<void> {
  const isIt = async (): Promise<boolean> => gateIndex(await tryPod(cluster)) >= 0 === wanted;
  await until(isIt, wanted ? 'new pods get its gate' : 'new pods get no gate');
}

function gateIndex({ spec }: Pod): number {
  return (spec.schedulingGates ?? []).findIndex(({ name }) => name === operatorGate);
}

/** Its update of a pod: the architectures in each required term, and its gate is removed. */
function placing(pod: Pod, values: readonly string[]): readonly object[] {
  const expression = { key: 'kubernetes.io/arch', operator: 'In', values };
  const affinity = pod.spec.affinity ?? {};
  const { nodeAffinity = {} } = affinity;
  const terms = nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), expression],
  }));
  const requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms };
  const value = {
    ...affinity,
    nodeAffinity: { ...nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution },
  };
  return [
    { op: 'add', path: '/spec/affinity', value },
    { op: 'remove', path: `/spec/schedulingGates/${gateIndex(pod)}` },
  ];
}
