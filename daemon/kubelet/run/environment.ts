/**
 * The variables of a plugin: those of the kubelet, then the configured ones (kubernetes
 * pkg/credentialprovider/plugin/plugin.go `mergeEnvVars`). Nothing of the agent's own environment is among them, because it holds what
 * a pod of Kubernetes is told and what Node obeys.
 */
import { secret } from '../../../src/telemetry/secret.ts';
import { kubeletVariables } from './kubelet-process.ts';
import type { EnvironmentVariable } from '../config/provider-config.ts';

/** What a service of systemd has at least, for where the kubelet's own environment cannot be read. */
export const baseEnvironment: readonly string[] = [
  'HOME=/root',
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
];

export interface SystemEnvironmentOptions {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** `kubeletEnvironment` of the configuration; wins over what is found. */
  readonly extra?: Readonly<Record<string, string>> | undefined;
}

/** What plugins have before their configured variables; `NAME=value`. */
export async function systemEnvironment({
  hostRoot,
  extra = {},
}: SystemEnvironmentOptions): Promise<string[]> {
  const found = (await kubeletVariables(hostRoot)) ?? baseEnvironment;
  return [...found, ...Object.entries(extra).map(([name, value]) => `${name}=${value}`)];
}

/** The list in the order in which the kubelet hands it over; of a name that is there twice, the last counts. */
export function mergeEnvironment(
  system: readonly string[],
  configured: readonly EnvironmentVariable[] = [],
): string[] {
  return [...system, ...configured.map(({ name, value }) => `${name}=${value}`)];
}

/** The list as a process takes it; the last value of each name counts, as in Go's os/exec. */
export function environmentObject(variables: readonly string[]): Record<string, string> {
  const found = new Map<string, string>();
  for (const variable of variables) {
    // As in Go, a name may begin with `=`; what has no other is no variable.
    const equals = variable.indexOf('=', 1);
    if (equals > 0) found.set(variable.slice(0, equals), variable.slice(equals + 1));
  }
  for (const [name, value] of found) if (secretName.test(name)) secret(value);
  return Object.fromEntries(found);
}

/** Values of such variables are scrubbed from whatever a plugin writes to its standard error. */
const secretName = /secret|token|passw|credential|api_?key|private/i;
