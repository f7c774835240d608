/**
 * The class of a node by its agent's report, otherwise by its labels and `status.nodeInfo`. The kubelet knows
 * the runtime in use better than the agent, which finds a program's version and configuration.
 */
import type { Node } from '../kube/api/objects.ts';
import { isArchitecture } from '../names/architecture.ts';
import { keys } from '../names/keys.ts';
import { labeledLevels, levelOfLabels, type LabeledLevels } from './amd64-level.ts';
import type { NodeClass } from './node-class.ts';
import { runtimeOf, type NodeReport } from './node-report.ts';

export interface ClassifiedNode {
  readonly name: string;
  /** Label `kubernetes.io/hostname`; absent: the node cannot be excluded by name. */
  readonly hostname?: string;
  readonly class: NodeClass;
  readonly levels: LabeledLevels;
}

/** The fields of a Node that its class depends on. */
export type NodeObject = Pick<Node, 'metadata' | 'status'>;
type NodeInfo = NonNullable<NonNullable<NodeObject['status']>['nodeInfo']>;

/** The node's report, which is empty at first, before the label, which people can overwrite. */
export function architectureOf({ metadata, status }: NodeObject): string | undefined {
  return status?.nodeInfo?.architecture || metadata?.labels?.[keys.architectureLabel];
}

/** @returns `undefined`: its architecture is not known yet */
export function classify(node: NodeObject): ClassifiedNode | undefined {
  const architecture = architectureOf(node);
  if (architecture === undefined || !isArchitecture(architecture)) return undefined;
  const labels = node.metadata?.labels ?? {};
  const { nodeInfo = {} } = node.status ?? {};
  const os = nodeInfo.operatingSystem || labels[osLabel] || 'linux';
  const hostname = labels[keys.hostnameLabel];
  const isAmd64 = architecture === 'amd64';
  const level = isAmd64 ? levelOfLabels(labels) : undefined;
  return {
    name: node.metadata?.name ?? '',
    ...(hostname !== undefined && { hostname }),
    class: {
      os,
      architecture,
      ...runtimeIn(nodeInfo),
      ...(level && { amd64Level: level }),
      ...pageSizeIn(nodeInfo),
      ...(os === 'windows' ? windowsVersionIn(nodeInfo, labels) : {}),
    },
    levels: isAmd64 ? labeledLevels(labels) : {},
  };
}

/** A report about a runtime that the node does not use says nothing about pulls. */
export function withReport(own: NodeClass, report: NodeReport | undefined): NodeClass {
  if (report === undefined) return own;
  const { runtime, pullMode, amd64Level, ...others } = report;
  const inUse = own.runtime ?? runtime;
  const isSame = runtime === undefined || inUse?.name === runtime.name;
  return {
    ...own,
    ...(inUse && { runtime: inUse }),
    ...(pullMode && isSame && { pullMode }),
    ...(amd64Level && own.architecture === 'amd64' && { amd64Level }),
    ...others,
  };
}

const osLabel = 'kubernetes.io/os';
/** Set by the kubelet: major, minor and build (kubernetes pkg/kubelet/kubelet_node_status_windows.go). */
const windowsBuildLabel = 'node.kubernetes.io/windows-build';

/** `containerd://2.1.4` */
function runtimeIn({ containerRuntimeVersion = '' }: NodeInfo): Pick<NodeClass, 'runtime'> {
  const [name, version] = containerRuntimeVersion.split('://');
  const runtime = runtimeOf(name, version);
  return runtime ? { runtime } : {};
}

/** Names of kernels with large pages: Fedora and RHEL (`+64k`, `+16k`), Ubuntu (`-generic-64k`). */
function pageSizeIn({ kernelVersion = '' }: NodeInfo): Pick<NodeClass, 'pageSize'> {
  const kib = /[+-](16|64)k$/u.exec(kernelVersion)?.[1];
  return kib === undefined ? {} : { pageSize: Number(kib) * 1024 };
}

/** Windows: the kernel version is `10.0.20348.2113`. */
function windowsVersionIn(
  { kernelVersion = '' }: NodeInfo,
  labels: Readonly<Record<string, string>>,
): Pick<NodeClass, 'osVersion'> {
  const version = /^\d{1,3}\.\d{1,3}\.\d{1,5}/u.exec(kernelVersion || (labels[windowsBuildLabel] ?? ''))?.[0];
  return version === undefined ? {} : { osVersion: version };
}
