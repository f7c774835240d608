/** The parts of the configuration of plugins, for people, and the differences from a kubelet since 1.34. */
import { part, type SourcePart } from '../../src/files/source-part.ts';
import type { Plugin } from './config/read-config.ts';
import type { NodeProgram } from './run/environment.ts';
import type { PluginErrorCode } from './run/plugin-error.ts';

const atStart = 'the kubelet reads it only when it starts; archwright uses a change at once';
const boundToken = 'the kubelet’s tokens are bound to a pod, the agent’s only to the service account';
const noStart = 'a kubelet does not start with this';

/** @param path of the configuration @param plugins of the last usable one @param problem of the current one */
export function describePlugins(
  path: string,
  plugins: readonly Plugin[] = [],
  problem: string | undefined,
): SourcePart[] {
  const config =
    problem === undefined
      ? part(path, 'used', `plugins: ${plugins.length}`, [atStart])
      : part(path, 'left-out', problem, [noStart]);
  return [config, ...plugins.map(describePlugin)];
}

export function describeEnvironment({
  isRunning,
  service,
}: Pick<NodeProgram, 'isRunning' | 'service'>): SourcePart {
  const where = 'environment of plugins';
  if (isRunning) return part(where, 'used', 'the variables of the running kubelet');
  if (service !== undefined)
    return part(where, 'used', `HOME, PATH, the variables of ${service}, and kubeletEnvironment`);
  const what =
    'the variables of the running kubelet cannot be read; plugins have HOME, PATH and kubeletEnvironment';
  return part(where, 'absent', what, [
    'the kubelet gives plugins its own variables; set those that they need in kubeletEnvironment',
  ]);
}

function describePlugin({ config: { name, matchImages, tokenAttributes }, leftOut }: Plugin): SourcePart {
  const where = `plugin ${name}`;
  if (leftOut === undefined) {
    const what = `for ${matchImages.join(', ')}`;
    if (tokenAttributes === undefined) return part(where, 'used', what);
    return part(where, 'used', `${what}, with a token of the pod’s service account`, [boundToken]);
  }
  return part(where, 'left-out', leftOut.reason, [whatKubeletDoes(leftOut.code)]);
}

function whatKubeletDoes(code: PluginErrorCode): string {
  if (code === 'no-token') return 'the kubelet runs it with a token of the pod’s service account';
  return code === 'unsafe' ? 'the kubelet runs it' : noStart;
}
