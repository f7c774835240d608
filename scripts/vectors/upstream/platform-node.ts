/** The node's side of platforms: its label and its kernel. */
import { normalizeArchitecture } from '../../../src/names/platform.ts';

/** A kernel name without a known variant. */
export class UnknownMachine extends Error {
  readonly code = 'unknown-machine';
  readonly temporary = false;
  constructor() {
    super('invalid argument');
    this.name = 'UnknownMachine';
  }
}

/**
 * The architecture of images that a node runs natively. The label `kubernetes.io/arch` is the kubelet's
 * GOARCH (kubernetes `pkg/kubelet/kubelet_node_status.go`), and OCI uses the names of GOARCH too.
 */
export function architectureOfLabel(label: string): string {
  return normalizeArchitecture(label).architecture;
}

/**
 * ARM variant of a machine name from `uname -m`, without the `v`; `unknown` for a version unknown to
 * containerd. Source: containerd/platforms `cpuinfo_linux.go` getCPUVariantFromArch.
 * @throws UnknownMachine if it is not an ARM name
 */
export function cpuVariantOfMachine(machine: string): string {
  const name = machine.toLowerCase();
  if (name === 'aarch64') return '8';
  const version = /^armv(.)/s.exec(name)?.[1];
  if (version === undefined) throw new UnknownMachine();
  return '345678'.includes(version) ? version : 'unknown';
}
