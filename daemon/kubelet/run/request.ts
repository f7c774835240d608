/**
 * What a plugin reads from its standard input: one line of JSON, with the members and escapes of Go's encoder
 * (kubernetes staging/src/k8s.io/kubelet/pkg/apis/credentialprovider/v1/types.go).
 */
import { compareBytes } from '../../../src/credentials/keyring/keyring.ts';
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';
import { tokenApiVersion } from '../config/provider-config.ts';

export interface ProviderRequest {
  /** Normalised: `domain/path` without tag and digest. */
  readonly image: string;
  readonly serviceAccountToken?: Secret | undefined;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * The line to send, with the token in clear text.
 * @param apiVersion of the configuration; versions before v1 have no tokens
 */
export function encodeRequest(apiVersion: string, request: ProviderRequest): string {
  const members: [string, string][] = [
    ['kind', goString('CredentialProviderRequest')],
    ['apiVersion', goString(apiVersion)],
    ['image', goString(request.image)],
  ];
  if (apiVersion === tokenApiVersion) {
    const token = request.serviceAccountToken === undefined ? '' : reveal(request.serviceAccountToken);
    const annotations = Object.entries(request.serviceAccountAnnotations ?? {});
    if (token !== '') members.push(['serviceAccountToken', goString(token)]);
    if (annotations.length > 0) {
      const sorted = annotations.sort(([a], [b]) => compareBytes(a, b));
      members.push([
        'serviceAccountAnnotations',
        goObject(sorted.map(([key, value]) => [key, goString(value)])),
      ]);
    }
  }
  return `${goObject(members)}\n`;
}

function goObject(members: readonly (readonly [name: string, value: string])[]): string {
  return `{${members.map(([name, value]) => `${goString(name)}:${value}`).join(',')}}`;
}

/** Go also escapes HTML characters and line separators. */
function goString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll(
    /[<>&\u2028\u2029]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
