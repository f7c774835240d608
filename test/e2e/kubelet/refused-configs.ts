/** Configurations that a kubelet refuses. The agent runs without plugins and reports the kubelet's reason. */
import { pluginConfig, providersFile, type Provider } from './setup.ts';

export interface RefusedConfig {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  readonly isDirectory?: boolean;
  readonly programs?: readonly string[];
}

const good: Provider = { matchImages: ['registry.example'] };

function provider(more: Partial<Provider>, name = 'good'): string {
  return providersFile([[name, { ...good, ...more }]]);
}

function one(name: string, text: string, programs: readonly string[] = ['good']): RefusedConfig {
  return { name, files: { [pluginConfig]: text }, programs };
}

export const refusedConfigs: readonly RefusedConfig[] = [
  one('no-providers', providersFile([])),
  one(
    'twice-a-name',
    providersFile([
      ['good', good],
      ['good', good],
    ]),
  ),
  one('slash-in-name', provider({}, 'a/b')),
  one('space-in-name', provider({}, 'a b')),
  one('dots-as-name', provider({}, '..')),
  one('no-patterns', provider({ matchImages: [] })),
  one('bad-pattern', provider({ matchImages: ['registry.example:port'] })),
  one('pattern-with-space', provider({ matchImages: ['registry .example'] })),
  one('negative-duration', provider({ defaultCacheDuration: '-1m' })),
  one('no-duration', provider({}).replace(/"defaultCacheDuration":"0s",/, '')),
  one('bad-duration', provider({ defaultCacheDuration: 'soon' })),
  one('unknown-protocol', provider({ version: 'v2' })),
  one('no-protocol', provider({}).replace(/,"apiVersion":"credentialprovider[^"]*"/, '')),
  one('unknown-version', provider({}).replace('kubelet.config.k8s.io/v1', 'kubelet.config.k8s.io/v9')),
  one('other-kind', provider({}).replace('CredentialProviderConfig', 'KubeletConfiguration')),
  one('unknown-member', provider({}).replace('"name"', '"nickname":"x","name"')),
  one('twice-a-member', provider({}).replace('"name"', '"name":"x","name"')),
  one(
    'tokens-with-beta-protocol',
    provider({
      version: 'v1beta1',
      tokenAttributes: { serviceAccountTokenAudience: 'x', cacheType: 'Token', requireServiceAccount: true },
    }),
  ),
  one('tokens-without-anything', provider({ tokenAttributes: {} })),
  one('several-problems', provider({ matchImages: [], defaultCacheDuration: '-1s', version: 'v3' }, 'a b')),
  one('no-program', provider({}), []),
  { name: 'no-file', files: {} },
  { name: 'empty-directory', files: { [`${pluginConfig}/readme.txt`]: '' }, isDirectory: true },
  {
    name: 'twice-a-name-in-two-files',
    files: { [`${pluginConfig}/a.yaml`]: provider({}), [`${pluginConfig}/b.json`]: provider({}) },
    isDirectory: true,
    programs: ['good'],
  },
];
