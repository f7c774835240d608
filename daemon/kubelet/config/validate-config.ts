/**
 * Whether the kubelet would take a configuration, in its own words: kubernetes pkg/credentialprovider/plugin/config.go
 * `validateCredentialProviderConfig`, in its order. Paths carry no index.
 */
import { aggregate, duplicate, forbidden, invalid, notSupported, required } from './field-error.ts';
import { formatGoDuration } from '../../go/duration.ts';
import { matchImageProblem } from './match-image.ts';
import {
  execApiVersions,
  tokenApiVersion,
  type ProviderConfig,
  type TokenAttributes,
} from './provider-config.ts';
import { qualifiedNameProblems } from './qualified-name.ts';

const cacheTypes = ['ServiceAccount', 'Token'] as const;

export interface ValidationOptions {
  /** The gate `KubeletServiceAccountTokenForCredentialProviders`: on since Kubernetes 1.34, and here by default. */
  readonly serviceAccountTokens?: boolean;
}

/** @returns all that is wrong as one text; `undefined` where the kubelet would take it */
export function validateConfig(
  providers: readonly ProviderConfig[],
  { serviceAccountTokens = true }: ValidationOptions = {},
): string | undefined {
  const verdicts =
    providers.length === 0 ? [required('providers', 'at least 1 item in plugins is required')] : [];
  const seen = new Set<string>();
  for (const provider of providers) {
    verdicts.push(...nameVerdicts(provider.name));
    if (seen.has(provider.name)) verdicts.push(duplicate('providers.name', provider.name));
    seen.add(provider.name);
    verdicts.push(
      ...apiVersionVerdicts(provider.apiVersion),
      ...matchImagesVerdicts(provider.matchImages),
      ...cacheDurationVerdicts(provider.defaultCacheDurationMs),
    );
    if (provider.tokenAttributes !== undefined) {
      verdicts.push(...tokenVerdicts(provider.tokenAttributes, provider.apiVersion, serviceAccountTokens));
    }
  }
  return aggregate(verdicts);
}

function nameVerdicts(name: string): string[] {
  const wrong = (detail: string): string => invalid('providers.name', name, `provider name cannot ${detail}`);
  return [
    ...(name.includes('/') ? [wrong("contain '/'")] : []),
    ...(name.includes(' ') ? [wrong('contain spaces')] : []),
    ...(name === '.' ? [wrong("be '.'")] : []),
    ...(name === '..' ? [wrong("be '..'")] : []),
  ];
}

function apiVersionVerdicts(apiVersion: string): string[] {
  if (apiVersion === '') return [required('providers.apiVersion')];
  if (execApiVersions.some((known) => known === apiVersion)) return [];
  return [notSupported('providers.apiVersion', apiVersion, execApiVersions)];
}

function matchImagesVerdicts(matchImages: readonly string[]): string[] {
  if (matchImages.length === 0) {
    return [required('providers.matchImages', 'at least 1 item in matchImages is required')];
  }
  return matchImages.flatMap((image) => {
    const problem = matchImageProblem(image);
    return problem === undefined
      ? []
      : [invalid('providers.matchImages', image, `match image is invalid: ${problem}`)];
  });
}

function cacheDurationVerdicts(ms: number | undefined): string[] {
  const path = 'providers.defaultCacheDuration';
  if (ms === undefined) return [required(path)];
  return ms < 0 ? [invalid(path, formatGoDuration(ms), 'must be greater than or equal to 0')] : [];
}

function tokenVerdicts(attributes: TokenAttributes, apiVersion: string, enabled: boolean): string[] {
  const path = 'providers.tokenAttributes';
  const requiredPath = `${path}.requiredServiceAccountAnnotationKeys`;
  const { requireServiceAccount, cacheType } = attributes;
  const requiredKeys = attributes.requiredServiceAccountAnnotationKeys ?? [];
  const optionalKeys = attributes.optionalServiceAccountAnnotationKeys ?? [];
  const both = [...new Set(requiredKeys)].filter((key) => optionalKeys.includes(key)).sort();
  return [
    ...(enabled
      ? []
      : [
          forbidden(
            path,
            'tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled',
          ),
        ]),
    ...(attributes.serviceAccountTokenAudience === ''
      ? [required(`${path}.serviceAccountTokenAudience`)]
      : []),
    ...(requireServiceAccount === undefined ? [required(`${path}.requireServiceAccount`)] : []),
    ...(apiVersion === tokenApiVersion
      ? []
      : [forbidden(path, `tokenAttributes is only supported for ${tokenApiVersion} API version`)]),
    ...(requireServiceAccount === false && requiredKeys.length > 0
      ? [
          forbidden(
            requiredPath,
            'requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set',
          ),
        ]
      : []),
    ...annotationVerdicts(requiredPath, requiredKeys),
    ...annotationVerdicts(`${path}.optionalServiceAccountAnnotationKeys`, optionalKeys),
    ...(both.length > 0 ? [invalid(path, both, 'annotation keys cannot be both required and optional')] : []),
    ...cacheTypeVerdicts(`${path}.cacheType`, cacheType),
  ];
}

/** As for the keys of an object's annotations: case does not matter. */
function annotationVerdicts(path: string, keys: readonly string[]): string[] {
  return keys.flatMap((key, index) => [
    ...qualifiedNameProblems(key.toLowerCase()).map((problem) => invalid(path, key, problem)),
    ...(keys.indexOf(key) < index ? [duplicate(path, key)] : []),
  ]);
}

function cacheTypeVerdicts(path: string, cacheType: string): string[] {
  if (cacheType === '') {
    const supported = cacheTypes.join(', ');
    return [
      required(
        path,
        `cacheType is required to be set when tokenAttributes is specified. Supported values are: ${supported}`,
      ),
    ];
  }
  return cacheTypes.some((known) => known === cacheType) ? [] : [notSupported(path, cacheType, cacheTypes)];
}
