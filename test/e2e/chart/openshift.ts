/**
 * OpenShift, as far as a test can restate it: the SecurityContextConstraints API with its admission rules
 * (openshift/apiserver-library-go pkg/securitycontextconstraints, sccmatching/provider.go), and a namespace.
 */
import { stringify } from 'yaml';
import type { Container, KubeObject } from '../../../src/kube/api/objects.ts';

interface SeLinux {
  readonly type?: string;
  readonly level?: string;
  readonly user?: string;
  readonly role?: string;
}

type Group = { readonly type: 'RunAsAny' } | { readonly type: 'MustRunAs' };

export interface Constraints extends KubeObject {
  readonly allowHostDirVolumePlugin: boolean;
  readonly allowHostIPC: boolean;
  readonly allowHostNetwork: boolean;
  readonly allowHostPID: boolean;
  readonly allowHostPorts: boolean;
  readonly allowPrivilegeEscalation: boolean;
  readonly allowPrivilegedContainer: boolean;
  readonly allowedCapabilities: readonly string[];
  readonly defaultAddCapabilities: readonly string[];
  readonly requiredDropCapabilities: readonly string[];
  readonly readOnlyRootFilesystem: boolean;
  readonly runAsUser:
    | { readonly type: 'MustRunAs'; readonly uid: number }
    | { readonly type: 'MustRunAsRange' }
    | { readonly type: 'RunAsAny' };
  readonly seLinuxContext: { readonly type: 'MustRunAs'; readonly seLinuxOptions?: SeLinux };
  readonly fsGroup: Group;
  readonly supplementalGroups: Group;
  readonly seccompProfiles: readonly string[];
  readonly volumes: readonly string[];
  readonly priority: number | null;
  readonly users: readonly string[];
  readonly groups: readonly string[];
}

const name = { type: 'string' };
const flag = { type: 'boolean' };
const names = { type: 'array', nullable: true, items: name };
const number = { type: 'integer' };
const group = {
  type: 'object',
  properties: {
    type: name,
    ranges: { type: 'array', items: { type: 'object', properties: { min: number, max: number } } },
  },
};
const seLinux = { type: 'object', properties: { type: name, level: name, user: name, role: name } };
const fields = {
  ...Object.fromEntries(
    ['DirVolumePlugin', 'IPC', 'Network', 'PID', 'Ports'].map((what) => [`allowHost${what}`, flag]),
  ),
  allowPrivilegeEscalation: { ...flag, nullable: true },
  defaultAllowPrivilegeEscalation: { ...flag, nullable: true },
  allowPrivilegedContainer: flag,
  allowedCapabilities: names,
  defaultAddCapabilities: names,
  requiredDropCapabilities: names,
  readOnlyRootFilesystem: flag,
  runAsUser: {
    type: 'object',
    properties: { type: name, uid: number, uidRangeMin: number, uidRangeMax: number },
  },
  seLinuxContext: { type: 'object', properties: { type: name, seLinuxOptions: seLinux } },
  fsGroup: group,
  supplementalGroups: group,
  seccompProfiles: names,
  volumes: names,
  priority: { ...number, nullable: true },
  users: names,
  groups: names,
};
/** Those that the API requires. */
const required = [
  ...Object.keys(fields).filter((key) => key.startsWith('allowHost')),
  'allowPrivilegedContainer',
  'allowedCapabilities',
  'defaultAddCapabilities',
  'priority',
  'readOnlyRootFilesystem',
  'requiredDropCapabilities',
  'volumes',
];

/** The CustomResourceDefinition of SecurityContextConstraints, without what tests do not use. */
export const constraintsDefinition = stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'securitycontextconstraints.security.openshift.io' },
  spec: {
    group: 'security.openshift.io',
    names: {
      kind: 'SecurityContextConstraints',
      plural: 'securitycontextconstraints',
      singular: 'securitycontextconstraint',
    },
    scope: 'Cluster',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', required, properties: fields } },
      },
    ],
  },
});

/** The SCC that every service account may use. */
export const restrictedV2: Constraints = {
  metadata: { name: 'restricted-v2' },
  allowHostDirVolumePlugin: false,
  allowHostIPC: false,
  allowHostNetwork: false,
  allowHostPID: false,
  allowHostPorts: false,
  allowPrivilegeEscalation: false,
  allowPrivilegedContainer: false,
  allowedCapabilities: ['NET_BIND_SERVICE'],
  defaultAddCapabilities: [],
  requiredDropCapabilities: ['ALL'],
  readOnlyRootFilesystem: false,
  runAsUser: { type: 'MustRunAsRange' },
  seLinuxContext: { type: 'MustRunAs' },
  fsGroup: { type: 'MustRunAs' },
  supplementalGroups: { type: 'RunAsAny' },
  seccompProfiles: ['runtime/default'],
  volumes: 'configMap csi downwardAPI emptyDir ephemeral persistentVolumeClaim projected secret'.split(' '),
  priority: null,
  users: [],
  groups: ['system:authenticated'],
};

/** Annotations that OpenShift gives each namespace: users and groups, and the SELinux level. */
const namespace = { first: 1_000_650_000, last: 1_000_659_999, level: 's0:c26,c5' };

interface Security {
  readonly runAsUser?: number;
  readonly runAsNonRoot?: boolean;
  readonly fsGroup?: number;
  readonly seLinuxOptions?: SeLinux;
  readonly seccompProfile?: { readonly type: string };
  readonly privileged?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
}

type SecuredContainer = Container & {
  readonly securityContext?: Security;
  readonly volumeMounts?: readonly { readonly name: string; readonly readOnly?: boolean }[];
  readonly ports?: readonly { readonly containerPort: number; readonly hostPort?: number }[];
};

export interface SecuredPod {
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly securityContext?: Security;
  readonly volumes?: readonly Readonly<Record<string, unknown>>[];
  readonly initContainers?: readonly SecuredContainer[];
  readonly containers: readonly SecuredContainer[];
}

/** Why the admission refuses a pod under an SCC, after the defaults that it sets; none: it admits the pod. */
export function faultsUnder(scc: Constraints, pod: SecuredPod): readonly string[] {
  const faults: string[] = [];
  const check = (isFine: boolean, fault: string): void => void (isFine || faults.push(fault));
  check(scc.allowHostNetwork || pod.hostNetwork !== true, 'host network');
  check(scc.allowHostPID || pod.hostPID !== true, 'host PID');
  check(scc.allowHostIPC || pod.hostIPC !== true, 'host IPC');
  for (const volume of pod.volumes ?? []) {
    const type = Object.keys(volume).find((key) => key !== 'name') ?? 'emptyDir';
    const isAllowed = scc.volumes.includes(type) && (type !== 'hostPath' || scc.allowHostDirVolumePlugin);
    check(isAllowed, `volume ${type}`);
  }
  const { fsGroup } = pod.securityContext ?? {};
  check(scc.fsGroup.type === 'RunAsAny' || fsGroup === undefined || isOfNamespace(fsGroup), 'fsGroup');
  for (const container of [...(pod.initContainers ?? []), ...pod.containers])
    faults.push(...containerFaults(scc, pod, container).map((fault) => `${container.name}: ${fault}`));
  return faults;
}

function containerFaults(scc: Constraints, pod: SecuredPod, container: SecuredContainer): readonly string[] {
  const faults: string[] = [];
  const check = (isFine: boolean, fault: string): void => void (isFine || faults.push(fault));
  const security: Security = { ...pod.securityContext, ...container.securityContext };
  check(scc.allowPrivilegedContainer || security.privileged !== true, 'privileged');
  const readOnly = security.readOnlyRootFilesystem ?? scc.readOnlyRootFilesystem;
  check(!scc.readOnlyRootFilesystem || readOnly, 'root file system');
  const mayEscalate = security.allowPrivilegeEscalation ?? scc.allowPrivilegeEscalation;
  check(scc.allowPrivilegeEscalation || !mayEscalate, 'privilege escalation');
  // With the host network, the API server makes each port one of the host.
  const hostPorts = container.ports?.filter(({ hostPort }) => hostPort !== undefined || pod.hostNetwork);
  check(scc.allowHostPorts || !hostPorts?.length, 'host ports');
  const { add = [], drop = [] } = security.capabilities ?? {};
  for (const each of add)
    check([...scc.allowedCapabilities, ...scc.defaultAddCapabilities].includes(each), `capability ${each}`);
  // Required drops are added to those of the container.
  check(!add.some((each) => [...drop, ...scc.requiredDropCapabilities].includes(each)), 'added and dropped');
  const user = security.runAsUser ?? defaultUser(scc);
  if (scc.runAsUser.type === 'MustRunAs') check(user === scc.runAsUser.uid, `user ${user}`);
  if (scc.runAsUser.type === 'MustRunAsRange') check(isOfNamespace(user), `user ${user}`);
  check(security.runAsNonRoot !== true || user !== 0, 'the kubelet does not start root');
  const wanted = { level: namespace.level, ...scc.seLinuxContext.seLinuxOptions };
  const found = security.seLinuxOptions ?? wanted;
  for (const key of ['type', 'level', 'user', 'role'] as const)
    check(found[key] === (wanted as SeLinux)[key], `SELinux ${key} ${found[key]}`);
  const profile = security.seccompProfile?.type ?? 'RuntimeDefault';
  check(
    profile === 'RuntimeDefault' && scc.seccompProfiles.includes('runtime/default'),
    `seccomp ${profile}`,
  );
  return faults;
}

function isOfNamespace(id: number | undefined): boolean {
  return id !== undefined && id >= namespace.first && id <= namespace.last;
}

function defaultUser({ runAsUser }: Constraints): number | undefined {
  if (runAsUser.type === 'MustRunAs') return runAsUser.uid;
  return runAsUser.type === 'MustRunAsRange' ? namespace.first : undefined;
}
