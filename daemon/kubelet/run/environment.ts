/**
 * The variables of a plugin: those of the kubelet, then the configured ones (kubernetes pkg/credentialprovider/plugin/plugin.go
 * `mergeEnvVars`). The agent's own environment is not passed on: it has the variables of a pod and of Node.
 */
import { secret } from '../../../src/telemetry/secret.ts';
import { kubeletVariables } from './kubelet-process.ts';
import type { EnvironmentVariable } from '../config/provider-config.ts';

/** The minimal environment of a systemd service, used if the kubelet's environment cannot be read. */
export const baseEnvironment: readonly string[] = [
  'HOME=/root',
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
];

export interface SystemEnvironmentOptions {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** The setting `kubeletEnvironment`; overrides the variables of the kubelet. */
  readonly extra?: Readonly<Record<string, string>> | undefined;
}

/** The variables of all plugins before the configured ones; `NAME=value`. */
export async function systemEnvironment({
  hostRoot,
  extra = {},
}: SystemEnvironmentOptions): Promise<string[]> {
  const found = (await kubeletVariables(hostRoot)) ?? baseEnvironment;
  return [...found, ...Object.entries(extra).map(([name, value]) => `${name}=${value}`)];
}

/** The list in the kubelet's order; the last value of a name counts. */
export function mergeEnvironment(
  system: readonly string[],
  configured: readonly EnvironmentVariable[] = [],
): string[] {
  return [...system, ...configured.map(({ name, value }) => `${name}=${value}`)];
}

/** The list as an object; the last value of a name counts, as in Go's os/exec. */
export function environmentObject(variables: readonly string[]): Record<string, string> {
  const found = new Map<string, string>();
  for (const variable of variables) {
    // As in Go, a name may begin with `=`. A text without another `=` is not a variable.
    const equals = variable.indexOf('=', 1);
    if (equals > 0) found.set(variable.slice(0, equals), variable.slice(equals + 1));
  }
  for (const [name, value] of found) if (secretName.test(name)) secret(value);
  return Object.fromEntries(found);
}

/** Values of such variables are scrubbed from the standard error of plugins. */
const secretName = /secret|token|passw|credential|api_?key|private/i;
