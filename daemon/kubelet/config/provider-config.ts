/**
 * A `CredentialProviderConfig`, decoded as strictly as by the kubelet (kubernetes
 * pkg/credentialprovider/plugin/config.go `decode`, apimachinery serializer/json). A text that begins with
 * `{` is JSON, any other text YAML.
 */
import { parseGoDuration } from '../../go.ts';
import {
  boolean,
  DecodeError,
  entries,
  fields,
  items,
  parseJsonTree,
  parseYamlTree,
  text,
  type Tree,
} from './tree.ts';

export interface ProviderConfig {
  readonly name: string;
  readonly matchImages: readonly string[];
  /** Milliseconds. Validation requires it. */
  readonly defaultCacheDurationMs?: number | undefined;
  readonly apiVersion: string;
  readonly args?: readonly string[] | undefined;
  readonly env?: readonly EnvironmentVariable[] | undefined;
  readonly tokenAttributes?: TokenAttributes | undefined;
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value: string;
}

/** The plugin needs a token of the pod's service account. */
export interface TokenAttributes {
  readonly serviceAccountTokenAudience: string;
  /** `ServiceAccount` or `Token` if valid. */
  readonly cacheType: string;
  readonly requireServiceAccount?: boolean | undefined;
  readonly requiredServiceAccountAnnotationKeys?: readonly string[] | undefined;
  readonly optionalServiceAccountAnnotationKeys?: readonly string[] | undefined;
}

const execGroup = 'credentialprovider.kubelet.k8s.io';

/** The only version of requests with service account tokens. */
export const tokenApiVersion = `${execGroup}/v1`;

/** Versions of requests and responses, in the kubelet's order. */
export const execApiVersions: readonly string[] = [
  tokenApiVersion,
  `${execGroup}/v1alpha1`,
  `${execGroup}/v1beta1`,
];

/** Fields of a provider by version of the configuration. */
const commonFields = ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion', 'args', 'env'] as const;
type FieldName = (typeof commonFields)[number] | 'tokenAttributes';
const versions = new Map<string, readonly FieldName[]>([
  ['kubelet.config.k8s.io/v1', [...commonFields, 'tokenAttributes']],
  ['kubelet.config.k8s.io/v1beta1', commonFields],
  ['kubelet.config.k8s.io/v1alpha1', commonFields],
]);

/** @returns the providers, not validated @throws DecodeError in the kubelet's words, without secrets */
export function decodeConfig(document: string): readonly ProviderConfig[] {
  const strict: string[] = [];
  const tree = /^\s*\{/.test(document) ? parseJsonTree(document) : parseYamlTree(document);
  const known = providerFields(tree);
  const root = fields(tree, '', ['kind', 'apiVersion', 'providers'], strict);
  const providers = items(root.providers, 'providers', (item, path) => provider(item, path, known, strict));
  if (strict.length > 0) throw new DecodeError(`strict decoding error: ${listed(strict)}`);
  return providers ?? [];
}

/** The kubelet checks kind and version before fields. */
function providerFields(tree: Tree): readonly FieldName[] {
  const members = entries(tree, '', []);
  const kind = text(members.get('kind'), 'kind');
  const apiVersion = text(members.get('apiVersion'), 'apiVersion');
  if (kind === '') throw new DecodeError("Object 'Kind' is missing");
  if (apiVersion === '') throw new DecodeError("Object 'apiVersion' is missing");
  const known = versions.get(apiVersion);
  if (kind === 'CredentialProviderConfig' && known !== undefined) return known;
  throw new DecodeError(
    `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`,
  );
}

/** The message goes to the log. The kubelet lists all problems; these are enough to repair a file. */
const maxProblems = 20;

function listed(problems: readonly string[]): string {
  const more = problems.length - maxProblems;
  return problems.slice(0, maxProblems).join(', ') + (more > 0 ? `, and ${more} more` : '');
}

function provider(tree: Tree, path: string, known: readonly FieldName[], strict: string[]): ProviderConfig {
  const found = fields(tree, path, known, strict);
  const at = (name: FieldName) => [found[name], `${path}.${name}`] as const;
  return {
    name: text(...at('name')),
    matchImages: items(...at('matchImages'), text) ?? [],
    defaultCacheDurationMs: duration(...at('defaultCacheDuration')),
    apiVersion: text(...at('apiVersion')),
    args: items(...at('args'), text),
    env: items(...at('env'), (item, itemPath) => variable(item, itemPath, strict)),
    tokenAttributes: tokenAttributes(...at('tokenAttributes'), strict),
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
  const at = (name: (typeof tokenFields)[number]) => [found[name], `${path}.${name}`] as const;
  return {
    serviceAccountTokenAudience: text(...at('serviceAccountTokenAudience')),
    cacheType: text(...at('cacheType')),
    requireServiceAccount: boolean(...at('requireServiceAccount')),
    requiredServiceAccountAnnotationKeys: items(...at('requiredServiceAccountAnnotationKeys'), text),
    optionalServiceAccountAnnotationKeys: items(...at('optionalServiceAccountAnnotationKeys'), text),
  };
}

/** A Go duration in milliseconds; absent for `null`. @throws DecodeError for all but strings */
export function duration(tree: Tree | undefined, path: string): number | undefined {
  if (tree === undefined || tree === null) return undefined;
  const ms = parseGoDuration(text(tree, path));
  if (ms === undefined)
    throw new DecodeError(`${JSON.stringify(path)} is not a duration such as 1h30m or 10s`);
  return ms;
}
