/**
 * Decodes a `CredentialProviderConfig` as strictly as the kubelet (kubernetes pkg/credentialprovider/plugin/config.go `decode`,
 * apimachinery serializer/json). A text that begins with `{` is JSON, any other text YAML.
 */
import type { EnvironmentVariable, ProviderConfig, TokenAttributes } from './provider-config.ts';
import { parseGoDuration } from '../../go/duration.ts';
import { parseJsonTree } from './tree-json.ts';
import { parseYamlTree } from './tree-yaml.ts';
import { boolean, DecodeError, entries, fields, items, text, type Tree } from './tree.ts';

const group = 'kubelet.config.k8s.io';
const kind = 'CredentialProviderConfig';

/** Fields of a provider in every version. */
const commonFields = ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion', 'args', 'env'] as const;
/** Additional fields of a provider, by version. */
const versions: ReadonlyMap<string, readonly 'tokenAttributes'[]> = new Map([
  [`${group}/v1`, ['tokenAttributes']],
  [`${group}/v1beta1`, []],
  [`${group}/v1alpha1`, []],
]);

/**
 * @param document the text of a file
 * @returns the providers in order, not yet validated
 * @throws DecodeError in the kubelet's words, without possible secrets
 */
export function decodeConfig(document: string): readonly ProviderConfig[] {
  const strict: string[] = [];
  const tree = /^\s*\{/.test(document) ? parseJsonTree(document) : parseYamlTree(document, strict);
  const more = providerFields(tree);
  const root = fields(tree, '', ['kind', 'apiVersion', 'providers'], strict);
  const providers = items(root.providers, 'providers', (item, path) => provider(item, path, more, strict));
  if (strict.length > 0) throw new DecodeError(`strict decoding error: ${strict.join(', ')}`);
  return providers ?? [];
}

/** The kubelet checks kind and version before fields. */
function providerFields(tree: Tree): readonly 'tokenAttributes'[] {
  const members = entries(tree, '', []);
  const foundKind = text(members.get('kind'), 'kind');
  const apiVersion = text(members.get('apiVersion'), 'apiVersion');
  if (foundKind === '') throw new DecodeError("Object 'Kind' is missing");
  if (apiVersion === '') throw new DecodeError("Object 'apiVersion' is missing");
  const more = versions.get(apiVersion);
  if (foundKind !== kind || more === undefined) {
    throw new DecodeError(
      `no kind ${JSON.stringify(foundKind)} is registered for version ${JSON.stringify(apiVersion)}`,
    );
  }
  return more;
}

function provider(
  tree: Tree,
  path: string,
  more: readonly 'tokenAttributes'[],
  strict: string[],
): ProviderConfig {
  const found = fields(tree, path, [...commonFields, ...more], strict);
  const at = (name: string): string => `${path}.${name}`;
  return {
    name: text(found.name, at('name')),
    matchImages: items(found.matchImages, at('matchImages'), text) ?? [],
    defaultCacheDurationMs: duration(found.defaultCacheDuration, at('defaultCacheDuration')),
    apiVersion: text(found.apiVersion, at('apiVersion')),
    args: items(found.args, at('args'), text),
    env: items(found.env, at('env'), (item, itemPath) => variable(item, itemPath, strict)),
    tokenAttributes: tokenAttributes(found.tokenAttributes, at('tokenAttributes'), strict),
  };
}

function variable(tree: Tree, path: string, strict: string[]): EnvironmentVariable {
  const { name, value } = fields(tree, path, ['name', 'value'], strict);
  return { name: text(name, `${path}.name`), value: text(value, `${path}.value`) };
}

const tokenFields = [
  'serviceAccountTokenAudience',
  'cacheType',
  'requireServiceAccount',
  'requiredServiceAccountAnnotationKeys',
  'optionalServiceAccountAnnotationKeys',
] as const;

function tokenAttributes(
  tree: Tree | undefined,
  path: string,
  strict: string[],
): TokenAttributes | undefined {
  if (tree === undefined || tree === null) return undefined;
  const found = fields(tree, path, tokenFields, strict);
  const at = (name: (typeof tokenFields)[number]): string => `${path}.${name}`;
  const keys = (name: (typeof tokenFields)[3 | 4]) => items(found[name], at(name), text);
  return {
    serviceAccountTokenAudience: text(found.serviceAccountTokenAudience, at('serviceAccountTokenAudience')),
    cacheType: text(found.cacheType, at('cacheType')),
    requireServiceAccount: boolean(found.requireServiceAccount, at('requireServiceAccount')),
    requiredServiceAccountAnnotationKeys: keys('requiredServiceAccountAnnotationKeys'),
    optionalServiceAccountAnnotationKeys: keys('optionalServiceAccountAnnotationKeys'),
  };
}

/**
 * A Go duration in milliseconds; `undefined` for `null` and an absent value.
 * @throws DecodeError for any other value, also for a number
 */
export function duration(tree: Tree | undefined, path: string): number | undefined {
  if (tree === undefined || tree === null) return undefined;
  const ms = parseGoDuration(text(tree, path));
  if (ms === undefined)
    throw new DecodeError(`${JSON.stringify(path)} is not a duration such as 1h30m or 10s`);
  return ms;
}
