/**
 * The kubelet's validation of a configuration, with its messages in its order (kubernetes
 * pkg/credentialprovider/plugin/config.go `validateCredentialProviderConfig`, apimachinery
 * pkg/util/validation). Paths have no index.
 */
import { formatGoDuration, goQuote } from '../../go.ts';
import { execApiVersions, tokenApiVersion, type ProviderConfig } from './provider-config.ts';
import { splitHostPath } from '../../../src/credentials/keyring/key.ts';

const cacheTypes: readonly string[] = ['ServiceAccount', 'Token'];

/** @returns all errors as one text, without repetitions; `undefined` for a valid configuration */
export function validateConfig(providers: readonly ProviderConfig[]): string | undefined {
  const errors =
    providers.length === 0 ? [required('providers', 'at least 1 item in plugins is required')] : [];
  const seen = new Set<string>();
  for (const provider of providers) {
    errors.push(...nameErrors(provider.name));
    if (seen.has(provider.name)) errors.push(duplicate('providers.name', provider.name));
    seen.add(provider.name);
    errors.push(
      ...choiceErrors('providers.apiVersion', provider.apiVersion, execApiVersions),
      ...matchImagesErrors(provider.matchImages),
      ...cacheDurationErrors(provider.defaultCacheDurationMs),
      ...tokenErrors(provider),
    );
  }
  const distinct = [...new Set(errors)];
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : distinct[0];
}

function nameErrors(name: string): string[] {
  const wrong = [
    ...(name.includes('/') ? ["contain '/'"] : []),
    ...(name.includes(' ') ? ['contain spaces'] : []),
    ...(name === '.' || name === '..' ? [`be '${name}'`] : []),
  ];
  return wrong.map((detail) => invalid('providers.name', name, `provider name cannot ${detail}`));
}

function choiceErrors(path: string, value: string, known: readonly string[], detail = ''): string[] {
  if (value === '') return [required(path, detail)];
  if (known.includes(value)) return [];
  const supported = known.map(goQuote).join(', ');
  return [`${path}: Unsupported value: ${goQuote(value)}: supported values: ${supported}`];
}

function matchImagesErrors(matchImages: readonly string[]): string[] {
  const path = 'providers.matchImages';
  if (matchImages.length === 0) return [required(path, 'at least 1 item in matchImages is required')];
  return matchImages.flatMap((image) => {
    const problem = matchImageProblem(image);
    return problem === undefined ? [] : [invalid(path, image, `match image is invalid: ${problem}`)];
  });
}

function cacheDurationErrors(ms: number | undefined): string[] {
  const path = 'providers.defaultCacheDuration';
  if (ms === undefined) return [required(path)];
  return ms < 0 ? [invalid(path, formatGoDuration(ms), 'must be greater than or equal to 0')] : [];
}

function tokenErrors({ tokenAttributes, apiVersion }: ProviderConfig): string[] {
  if (tokenAttributes === undefined) return [];
  const path = 'providers.tokenAttributes';
  const requiredPath = `${path}.requiredServiceAccountAnnotationKeys`;
  const optionalPath = `${path}.optionalServiceAccountAnnotationKeys`;
  const { requireServiceAccount, cacheType, serviceAccountTokenAudience } = tokenAttributes;
  const requiredKeys = tokenAttributes.requiredServiceAccountAnnotationKeys ?? [];
  const optionalKeys = tokenAttributes.optionalServiceAccountAnnotationKeys ?? [];
  const both = [...new Set(requiredKeys)].filter((key) => optionalKeys.includes(key)).sort();
  const errors: string[] = [];
  if (serviceAccountTokenAudience === '') errors.push(required(`${path}.serviceAccountTokenAudience`));
  if (requireServiceAccount === undefined) errors.push(required(`${path}.requireServiceAccount`));
  if (apiVersion !== tokenApiVersion) {
    errors.push(forbidden(path, `tokenAttributes is only supported for ${tokenApiVersion} API version`));
  }
  if (requireServiceAccount === false && requiredKeys.length > 0) {
    const detail = 'requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set';
    errors.push(forbidden(requiredPath, detail));
  }
  errors.push(
    ...annotationErrors(requiredPath, requiredKeys),
    ...annotationErrors(optionalPath, optionalKeys),
  );
  if (both.length > 0) {
    errors.push(invalid(path, both, 'annotation keys cannot be both required and optional'));
  }
  const supported = cacheTypes.join(', ');
  const detail = `cacheType is required to be set when tokenAttributes is specified. Supported values are: ${supported}`;
  return [...errors, ...choiceErrors(`${path}.cacheType`, cacheType, cacheTypes, detail)];
}

/** As for the annotations of objects, case does not matter. */
function annotationErrors(path: string, keys: readonly string[]): string[] {
  return keys.flatMap((key, index) => [
    ...qualifiedNameProblems(key.toLowerCase()).map((problem) => invalid(path, key, problem)),
    ...(keys.indexOf(key) < index ? [duplicate(path, key)] : []),
  ]);
}

// Messages of apimachinery pkg/util/validation/field/errors.go.

function required(path: string, detail = ''): string {
  return `${path}: Required value${detail === '' ? '' : `: ${detail}`}`;
}

function invalid(path: string, value: string | readonly string[], detail: string): string {
  const shown = typeof value === 'string' ? goQuote(value) : JSON.stringify(value);
  return `${path}: Invalid value: ${shown}: ${detail}`;
}

function duplicate(path: string, value: string): string {
  return `${path}: Duplicate value: ${goQuote(value)}`;
}

function forbidden(path: string, detail: string): string {
  return `${path}: Forbidden: ${detail}`;
}

const nameFormat = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const nameRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character" +
  ` (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${nameFormat}')`;
const labelFormat = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomainFormat = String.raw`${labelFormat}(\.${labelFormat})*`;
const subdomainRule =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  `end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomainFormat}')`;

function qualifiedNameProblems(text: string): string[] {
  const parts = text.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = partProblems('name', parts.at(-1) ?? '', 63, nameFormat, nameRule);
  if (parts.length < 2) return name;
  if (parts[0] === '') return ['prefix part must be non-empty', ...name];
  return [...partProblems('prefix', parts[0] ?? '', 253, subdomainFormat, subdomainRule), ...name];
}

function partProblems(part: string, text: string, maxBytes: number, format: string, rule: string): string[] {
  const length = Buffer.byteLength(text);
  return [
    ...(text === '' ? [`${part} part must be non-empty`] : []),
    ...(length > maxBytes ? [`${part} part must be no more than ${maxBytes} bytes`] : []),
    ...(new RegExp(`^${format}$`).test(text) ? [] : [`${part} part ${rule}`]),
  ];
}

/** The error in a `matchImages` entry, in the words of Go's net/url; `splitHostPath` decides. */
export function matchImageProblem(text: string): string | undefined {
  if (splitHostPath(text) !== undefined) return undefined;
  const url = `https://${text}`;
  const [beforeFragment = ''] = url.split('#', 1);
  const early = urlProblem(text.split('#', 1)[0] ?? '');
  if (early !== undefined) return `parse ${goQuote(beforeFragment)}: ${early}`;
  return `parse ${goQuote(url)}: ${escapeProblem(text.slice(text.indexOf('#') + 1)) ?? 'invalid URL'}`;
}

/** @param text without scheme and fragment */
function urlProblem(text: string): string | undefined {
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) return 'net/url: invalid control character in URL';
  const [address = ''] = text.split('?', 1);
  const slash = address.includes('/') ? address.indexOf('/') : address.length;
  const authority = address.slice(0, slash);
  const at = authority.lastIndexOf('@');
  return (
    hostProblem(authority.slice(at + 1)) ??
    (at < 0 ? undefined : userProblem(authority.slice(0, at))) ??
    escapeProblem(address.slice(slash))
  );
}

function hostProblem(host: string): string | undefined {
  if (host.includes('[')) {
    const end = host.lastIndexOf(']');
    if (end < 0) return "missing ']' in host";
    return (
      portProblem(host.slice(end + 1)) ??
      (splitHostPath(host) === undefined ? 'invalid IP-literal' : undefined)
    );
  }
  const colon = host.lastIndexOf(':');
  if (colon >= 0) {
    const problem = portProblem(host.slice(colon));
    if (problem !== undefined) return problem;
  }
  return escapeProblem(host, /^%(?:25|[89A-Fa-f][0-9A-Fa-f])/) ?? characterProblem(host);
}

function portProblem(port: string): string | undefined {
  return /^(?::[0-9]*)?$/.test(port) ? undefined : `invalid port ${goQuote(port)} after host`;
}

function userProblem(user: string): string | undefined {
  return /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user) ? escapeProblem(user) : 'net/url: invalid userinfo';
}

function characterProblem(host: string): string | undefined {
  const found = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/.exec(host);
  return found === null ? undefined : `invalid character ${goQuote(found[0])} in host name`;
}

/** The first escape that is invalid or not allowed here. */
function escapeProblem(text: string, allowed = /^%[0-9A-Fa-f]{2}/): string | undefined {
  for (let at = text.indexOf('%'); at >= 0; at = text.indexOf('%', at + 1)) {
    const escape = text.slice(at, at + 3);
    if (!allowed.test(escape)) return `invalid URL escape ${goQuote(escape)}`;
  }
  return undefined;
}
