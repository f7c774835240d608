/**
 * The kubelet's validation of a configuration, with its messages in its order (kubernetes pkg/credentialprovider/plugin/config.go
 * `validateCredentialProviderConfig`). Paths have no index.
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
  /** The feature gate `KubeletServiceAccountTokenForCredentialProviders`. Default: on, as since Kubernetes 1.34. */
  readonly serviceAccountTokens?: boolean;
}

/** @returns all errors as one text; `undefined` for a valid configuration */
export function validateConfig(
  providers: readonly ProviderConfig[],
  { serviceAccountTokens = true }: ValidationOptions = {},
): string | undefined {
  const errors =
    providers.length === 0 ? [required('providers', 'at least 1 item in plugins is required')] : [];
  const seen = new Set<string>();
  for (const provider of providers) {
    errors.push(...nameErrors(provider.name));
    if (seen.has(provider.name)) errors.push(duplicate('providers.name', provider.name));
    seen.add(provider.name);
    errors.push(
      ...apiVersionErrors(provider.apiVersion),
      ...matchImagesErrors(provider.matchImages),
      ...cacheDurationErrors(provider.defaultCacheDurationMs),
    );
    if (provider.tokenAttributes !== undefined) {
      errors.push(...tokenErrors(provider.tokenAttributes, provider.apiVersion, serviceAccountTokens));
    }
  }
  return aggregate(errors);
}

function nameErrors(name: string): string[] {
  const wrong = (detail: string) => (): string =>
    invalid('providers.name', name, `provider name cannot ${detail}`);
  return [
    ...errorIf(name.includes('/'), wrong("contain '/'")),
    ...errorIf(name.includes(' '), wrong('contain spaces')),
    ...errorIf(name === '.', wrong("be '.'")),
    ...errorIf(name === '..', wrong("be '..'")),
  ];
}

function errorIf(isWrong: boolean, error: () => string): string[] {
  return isWrong ? [error()] : [];
}

function apiVersionErrors(apiVersion: string): string[] {
  if (apiVersion === '') return [required('providers.apiVersion')];
  if (execApiVersions.some((known) => known === apiVersion)) return [];
  return [notSupported('providers.apiVersion', apiVersion, execApiVersions)];
}

function matchImagesErrors(matchImages: readonly string[]): string[] {
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

function cacheDurationErrors(ms: number | undefined): string[] {
  const path = 'providers.defaultCacheDuration';
  if (ms === undefined) return [required(path)];
  return ms < 0 ? [invalid(path, formatGoDuration(ms), 'must be greater than or equal to 0')] : [];
}

function tokenErrors(attributes: TokenAttributes, apiVersion: string, enabled: boolean): string[] {
  const path = 'providers.tokenAttributes';
  const requiredPath = `${path}.requiredServiceAccountAnnotationKeys`;
  const { requireServiceAccount, cacheType } = attributes;
  const requiredKeys = attributes.requiredServiceAccountAnnotationKeys ?? [];
  const optionalKeys = attributes.optionalServiceAccountAnnotationKeys ?? [];
  const both = [...new Set(requiredKeys)].filter((key) => optionalKeys.includes(key)).sort();
  return [
    ...errorIf(!enabled, () =>
      forbidden(
        path,
        'tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled',
      ),
    ),
    ...errorIf(attributes.serviceAccountTokenAudience === '', () =>
      required(`${path}.serviceAccountTokenAudience`),
    ),
    ...errorIf(requireServiceAccount === undefined, () => required(`${path}.requireServiceAccount`)),
    ...errorIf(apiVersion !== tokenApiVersion, () =>
      forbidden(path, `tokenAttributes is only supported for ${tokenApiVersion} API version`),
    ),
    ...errorIf(requireServiceAccount === false && requiredKeys.length > 0, () =>
      forbidden(
        requiredPath,
        'requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set',
      ),
    ),
    ...annotationErrors(requiredPath, requiredKeys),
    ...annotationErrors(`${path}.optionalServiceAccountAnnotationKeys`, optionalKeys),
    ...errorIf(both.length > 0, () =>
      invalid(path, both, 'annotation keys cannot be both required and optional'),
    ),
    ...cacheTypeErrors(`${path}.cacheType`, cacheType),
  ];
}

/** As for the annotations of objects, case does not matter. */
function annotationErrors(path: string, keys: readonly string[]): string[] {
  return keys.flatMap((key, index) => [
    ...qualifiedNameProblems(key.toLowerCase()).map((problem) => invalid(path, key, problem)),
    ...(keys.indexOf(key) < index ? [duplicate(path, key)] : []),
  ]);
}

function cacheTypeErrors(path: string, cacheType: string): string[] {
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
