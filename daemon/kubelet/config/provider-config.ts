/**
 * A `CredentialProviderConfig`, decoded as strictly as by the kubelet (kubernetes
 * pkg/credentialprovider/plugin/config.go `decode`, apimachinery serializer/json). A text that begins with
 * `{` is JSON, any other text YAML.
 */
import * as v from 'valibot';
import { parseGoDuration } from '../../go.ts';
import {
  DecodeError,
  object,
  parseJsonValue,
  parseYamlValue,
  readStrict,
  refuseDuplicates,
  struct,
  text,
} from './strict.ts';

const execGroup = 'credentialprovider.kubelet.k8s.io';

/** The only version of requests with service account tokens. */
export const tokenApiVersion = `${execGroup}/v1`;

/** Versions of requests and responses, in the kubelet's order. */
export const execApiVersions: readonly string[] = [
  tokenApiVersion,
  `${execGroup}/v1alpha1`,
  `${execGroup}/v1beta1`,
];

/** A Go duration in milliseconds. */
export const duration = v.optional(
  v.pipe(v.string(), v.transform(parseGoDuration), v.number('is not a duration such as 1h30m or 10s')),
);

const texts = v.optional(v.array(text));

const tokenAttributes = struct({
  serviceAccountTokenAudience: text,
  /** `ServiceAccount` or `Token` if valid. */
  cacheType: text,
  requireServiceAccount: v.optional(v.boolean()),
  requiredServiceAccountAnnotationKeys: texts,
  optionalServiceAccountAnnotationKeys: texts,
});

/** The plugin needs a token of the pod's service account. */
export type TokenAttributes = v.InferOutput<typeof tokenAttributes>;

/** @param attributes the schema of `tokenAttributes` */
function provider<const S extends v.GenericSchema>(attributes: S) {
  return struct({
    name: text,
    matchImages: v.optional(v.array(text), []),
    /** Milliseconds. Validation requires it. */
    defaultCacheDuration: duration,
    apiVersion: text,
    args: texts,
    env: v.optional(v.array(struct({ name: text, value: text }))),
    tokenAttributes: v.optional(attributes),
  });
}

const current = provider(tokenAttributes);
const before = provider(v.never('is not a known field'));

export type ProviderConfig = v.InferOutput<typeof current>;

/** Providers by version of the configuration. */
const versions = new Map<string, typeof current | typeof before>([
  ['kubelet.config.k8s.io/v1', current],
  ['kubelet.config.k8s.io/v1beta1', before],
  ['kubelet.config.k8s.io/v1alpha1', before],
]);

/** Other fields are read later. */
const typed = v.pipe(object, v.object({ kind: text, apiVersion: text }));

/** @returns the providers, not validated @throws DecodeError in the kubelet's words, without secrets */
export function decodeConfig(document: string): readonly ProviderConfig[] {
  const isJson = /^\s*\{/.test(document);
  const value = (isJson ? parseJsonValue(document) : parseYamlValue(document)) ?? {};
  // The kubelet checks kind and version before fields.
  const { kind, apiVersion } = readStrict(typed, value);
  if (kind === '') throw new DecodeError("Object 'Kind' is missing");
  if (apiVersion === '') throw new DecodeError("Object 'apiVersion' is missing");
  const known = versions.get(apiVersion);
  if (kind !== 'CredentialProviderConfig' || known === undefined) {
    const [what, version] = [JSON.stringify(kind), JSON.stringify(apiVersion)];
    throw new DecodeError(`no kind ${what} is registered for version ${version}`);
  }
  if (isJson) refuseDuplicates(document);
  const config = struct({ kind: text, apiVersion: text, providers: v.optional(v.array(known), []) });
  return readStrict(config, value).providers;
}
