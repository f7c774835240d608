/**
 * The kubelet's validation of a configuration, mostly in its words (kubernetes
 * pkg/credentialprovider/plugin/config.go `validateCredentialProviderConfig`). Paths have no index.
 */
import { splitHostPath } from '../../../src/credentials/keyring/key.ts';
import { isLabelKey } from '../../../src/names/labels.ts';
import { execApiVersions, tokenApiVersion, type ProviderConfig } from './provider-config.ts';

const cacheTypes: readonly string[] = ['ServiceAccount', 'Token'];

type Rule = readonly [isBroken: boolean, message: string];

/** @returns all errors as one text, without repetitions; `undefined` for a valid configuration */
export function validateConfig(providers: readonly ProviderConfig[]): string | undefined {
  const names = providers.map(({ name }) => name);
  const rules: readonly Rule[] = [
    [providers.length === 0, 'providers: Required value: at least 1 item in plugins is required'],
    ...providers.flatMap((provider, index): readonly Rule[] => [
      ...nameRules(provider.name),
      [names.indexOf(provider.name) < index, duplicate('providers.name', provider.name)],
      ...choiceRules('providers.apiVersion', provider.apiVersion, execApiVersions),
      ...matchImagesRules(provider.matchImages),
      [provider.defaultCacheDuration === undefined, 'providers.defaultCacheDuration: Required value'],
      [
        (provider.defaultCacheDuration ?? 0) < 0,
        'providers.defaultCacheDuration: Invalid value: must be greater than or equal to 0',
      ],
      ...tokenRules(provider),
    ]),
  ];
  const errors = [...new Set(rules.filter(([isBroken]) => isBroken).map(([, message]) => message))];
  return errors.length > 1 ? `[${errors.join(', ')}]` : errors[0];
}

function nameRules(name: string): readonly Rule[] {
  const cannot = (detail: string) => invalid('providers.name', name, `provider name cannot ${detail}`);
  return [
    [name.includes('/'), cannot("contain '/'")],
    [name.includes(' '), cannot('contain spaces')],
    [name === '.' || name === '..', cannot(`be '${name}'`)],
  ];
}

function choiceRules(path: string, value: string, known: readonly string[], detail = ''): readonly Rule[] {
  const supported = known.map((each) => JSON.stringify(each)).join(', ');
  return [
    [value === '', `${path}: Required value${detail}`],
    [
      value !== '' && !known.includes(value),
      `${path}: Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`,
    ],
  ];
}

function matchImagesRules(matchImages: readonly string[]): readonly Rule[] {
  const path = 'providers.matchImages';
  const detail = 'match image is invalid: it must have the form host[:port][/path]';
  return [
    [matchImages.length === 0, `${path}: Required value: at least 1 item in matchImages is required`],
    ...matchImages.map((image): Rule => [splitHostPath(image) === undefined, invalid(path, image, detail)]),
  ];
}

function tokenRules({ tokenAttributes, apiVersion }: ProviderConfig): readonly Rule[] {
  if (tokenAttributes === undefined) return [];
  const path = 'providers.tokenAttributes';
  const requiredPath = `${path}.requiredServiceAccountAnnotationKeys`;
  const { requireServiceAccount, cacheType, serviceAccountTokenAudience: audience } = tokenAttributes;
  const { requiredServiceAccountAnnotationKeys: required = [] } = tokenAttributes;
  const { optionalServiceAccountAnnotationKeys: optional = [] } = tokenAttributes;
  const both = [...new Set(required)].filter((key) => optional.includes(key)).sort();
  const detail = `: cacheType is required to be set when tokenAttributes is specified. Supported values are: ${cacheTypes.join(', ')}`;
  return [
    [audience === '', `${path}.serviceAccountTokenAudience: Required value`],
    [requireServiceAccount === undefined, `${path}.requireServiceAccount: Required value`],
    [
      apiVersion !== tokenApiVersion,
      `${path}: Forbidden: tokenAttributes is only supported for ${tokenApiVersion} API version`,
    ],
    [
      requireServiceAccount === false && required.length > 0,
      `${requiredPath}: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`,
    ],
    ...annotationRules(requiredPath, required),
    ...annotationRules(`${path}.optionalServiceAccountAnnotationKeys`, optional),
    [both.length > 0, invalid(path, both, 'annotation keys cannot be both required and optional')],
    ...choiceRules(`${path}.cacheType`, cacheType, cacheTypes, detail),
  ];
}

/** Case does not matter, as for annotations of objects. */
function annotationRules(path: string, keys: readonly string[]): readonly Rule[] {
  return keys.flatMap((key, index): readonly Rule[] => [
    [!isLabelKey(key.toLowerCase()), invalid(path, key, 'it is not a key of an annotation')],
    [keys.indexOf(key) < index, duplicate(path, key)],
  ]);
}

function invalid(path: string, value: string | readonly string[], detail: string): string {
  return `${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`;
}

function duplicate(path: string, value: string): string {
  return `${path}: Duplicate value: ${JSON.stringify(value)}`;
}
