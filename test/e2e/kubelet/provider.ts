/** Configurations of credential provider plugins as files write them. */
import { stringify } from 'yaml';

export interface Provider {
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheDuration?: string;
  /** Of the protocol with the plugin. */
  readonly version?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly tokenAttributes?: Readonly<Record<string, unknown>>;
}

export interface WrittenAs {
  /** Of the configuration. */
  readonly version?: 'v1' | 'v1beta1' | 'v1alpha1';
  readonly format?: 'json' | 'yaml';
}

export function providersFile(providers: readonly Provider[], as: WrittenAs = {}): string {
  const { version = 'v1', format = 'json' } = as;
  const document = {
    apiVersion: `kubelet.config.k8s.io/${version}`,
    kind: 'CredentialProviderConfig',
    providers: providers.map(
      ({ name, matchImages, defaultCacheDuration = '0s', version = 'v1', ...more }) => ({
        name,
        matchImages,
        defaultCacheDuration,
        apiVersion: `credentialprovider.kubelet.k8s.io/${version}`,
        ...(more.args && { args: more.args }),
        ...(more.env && { env: Object.entries(more.env).map(([name, value]) => ({ name, value })) }),
        ...(more.tokenAttributes && { tokenAttributes: more.tokenAttributes }),
      }),
    ),
  };
  return format === 'json' ? JSON.stringify(document) : stringify(document);
}
