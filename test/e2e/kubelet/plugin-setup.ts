/** Short ways to write setups of plugins. */
import { providersFile, type Provider, type WrittenAs } from './provider.ts';
import {
  pluginConfig,
  response,
  right,
  type Behavior,
  type PodCase,
  type PullSecret,
  type Setup,
} from './setup.ts';

export const host = 'registry.example';

export function pod(name: string, images: readonly string[], secrets: readonly PullSecret[] = []): PodCase {
  return { name, secrets, images: images.map((image) => ({ image })) };
}

/** Answers with one login for a key. */
export function answers(
  key: string,
  login = right('alice'),
  more: Parameters<typeof response>[1] = {},
): Behavior {
  return { stdout: response({ [key]: login }, more) };
}

/** With one file of configuration. */
export function setup(
  name: string,
  providers: readonly Provider[],
  behaviors: Readonly<Record<string, Behavior>>,
  pods: readonly PodCase[],
  more: Partial<Setup> & { readonly as?: WrittenAs } = {},
): Setup {
  const { as, files = {}, ...rest } = more;
  return {
    name,
    hostRoot: '/host',
    env: {},
    plugins: { config: pluginConfig, isDirectory: false, behaviors },
    pods,
    ...rest,
    files: { ...files, [pluginConfig]: providersFile(providers, as) },
  };
}
