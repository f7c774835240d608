/** What was found of the configuration of plugins, for people: each plugin, and what the node's kubelet would do differently. */
import type { SourcePart } from '../../src/files/source-part.ts';
import type { PluginErrorCode } from './run/plugin-error.ts';
import type { ProviderConfig } from './config/provider-config.ts';

/** Why a plugin is not run. */
export interface LeftOut {
  readonly code: PluginErrorCode;
  readonly reason: string;
}

export interface PluginsFound {
  readonly providers: readonly ProviderConfig[];
  /** The configuration is a directory of files. */
  readonly isDirectory: boolean;
  /** By name. */
  readonly leftOut: ReadonlyMap<string, LeftOut>;
}

const atStart =
  'the kubelet reads this once, at its start, and so does not know of changes before it is restarted; here they count at once';
const notUpTo133 = 'a kubelet up to 1.33 takes no directory';
const boundToken = 'the kubelet’s tokens are bound to a pod, these to the service account alone';
const noStart = 'a kubelet does not start with this';

/**
 * Describes all of it.
 * @param path of the configuration
 * @param found what counts; undefined where there never was a configuration that can be used
 * @param problem what is wrong with the configuration as it is now
 */
export function describePlugins(
  path: string,
  found: PluginsFound | undefined,
  problem: string | undefined,
): SourcePart[] {
  const { providers = [], isDirectory = false, leftOut } = found ?? {};
  const differs = [atStart, ...(isDirectory ? [notUpTo133] : []), ...orderDiffers(providers)];
  const config: SourcePart =
    problem === undefined
      ? { where: path, state: 'used', what: `plugins: ${providers.length}`, differs }
      : { where: path, state: 'left-out', what: problem, differs: [noStart] };
  return [config, ...providers.map((provider) => describePlugin(provider, leftOut?.get(provider.name)))];
}

/** @param isRead whether the variables of the running kubelet can be read; plugins have them too then */
export function describeEnvironment(isRead: boolean): SourcePart {
  const where = 'environment of plugins';
  if (isRead) return { where, state: 'used', what: 'the variables of the running kubelet' };
  return {
    where,
    state: 'absent',
    what: 'the variables of a running kubelet cannot be read; plugins have HOME, PATH and kubeletEnvironment',
    differs: ['the kubelet gives plugins its own variables: name those that they need in kubeletEnvironment'],
  };
}

function describePlugin(
  { name, matchImages, tokenAttributes }: ProviderConfig,
  leftOut: LeftOut | undefined,
): SourcePart {
  const where = `plugin ${name}`;
  if (leftOut === undefined) {
    const what = `for ${matchImages.join(', ')}`;
    if (tokenAttributes === undefined) return { where, state: 'used', what };
    const withToken = `${what}, with a token of the pod’s service account`;
    return { where, state: 'used', what: withToken, differs: [boundToken] };
  }
  return { where, state: 'left-out', what: leftOut.reason, differs: [whatKubeletDoes(leftOut.code)] };
}

function whatKubeletDoes(code: LeftOut['code']): string {
  if (code === 'no-token') return 'the kubelet runs it with a token of the pod’s service account';
  return code === 'unsafe' ? 'the kubelet runs it' : noStart;
}

/** Since Kubernetes 1.34 the order of the configuration counts; before, that of the names. */
function orderDiffers(providers: readonly ProviderConfig[]): string[] {
  if (providers.length === 0) return [];
  const names = providers.map(({ name }) => name);
  const byName = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const differs = [
    'a kubelet up to 1.32 sorts the answers of plugins together with the docker config by their keys',
  ];
  if (names.some((name, index) => name !== byName[index])) {
    differs.push(`a kubelet up to 1.33 asks plugins in the order of their names: ${byName.join(', ')}`);
  }
  return differs;
}
