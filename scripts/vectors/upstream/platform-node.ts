/** The node's side of platforms: what its label says and what its kernel says. */
import { normalizeArchitecture } from '../../../src/names/platform.ts';

/** A kernel name from which no variant can be told. */
export class UnknownMachine extends Error {
  readonly code = 'unknown-machine';
  readonly temporary = false;
  constructor() {
    super('invalid argument');
    this.name = 'UnknownMachine';
  }
}

/**
 * The architecture of images that a node runs natively. The label `kubernetes.io/arch` is the GOARCH of the kubelet binary
 * (kubernetes `pkg/kubelet/kubelet_node_status.go`), and OCI takes its architecture names from GOARCH too.
 */
export function architectureOfLabel(label: string): string {
  return normalizeArchitecture(label).architecture;
}

/**
 * ARM variant of a machine name as `uname -m` prints it, without the `v`; `unknown` for a version that containerd does not
 * know. Source: containerd/platforms `cpuinfo_linux.go` getCPUVariantFromArch.
 * @throws UnknownMachine where it is no ARM name
 */
export function cpuVariantOfMachine(machine: string): string {
  const name = machine.toLowerCase();
  if (name === 'aarch64') return '8';
  const version = /^armv(.)/s.exec(name)?.[1];
  if (version === undefined) throw new UnknownMachine();
  return '345678'.includes(version) ? version : 'unknown';
}
