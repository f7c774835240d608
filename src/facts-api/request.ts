/**
 * Body of `POST /v1/facts`: one pod's images and the caller's token. `explain` and `report` send it through
 * the API server's Service proxy. Unknown, missing or invalid fields are errors. Messages quote no value.
 */
import { isNamespaceName, isObjectName } from '../credentials/credential.ts';
import type { PullPolicy } from '../images/facts/facts.ts';
import { confirmedMs } from '../images/image-request.ts';
import { asObject, InvalidDocument, parseObject, type JsonObject } from '../http/json.ts';
import { secret, type Secret } from '../telemetry/secret.ts';

/**
 * Audience of the caller's token. No other program accepts it, least of all the API server, so the controller
 * learns nothing that it could use elsewhere.
 */
export const factsAudience = 'arch.example/facts';

export const factsPath = '/v1/facts';

/** Port of the controller's Service. */
export const factsPortName = 'facts';

/** As many as `explain` looks up (`facts-of-pod.ts`). */
export const maxImages = 256;
/** As many as are read of a pod (`pull-secrets.ts`). */
export const maxPullSecrets = 20;
/** A token of a service account has 1 to 2 KiB. */
const maxTokenLength = 8192;
/** Longer than any image that a registry can have: its host has 253 characters at most. */
export const maxImageLength = 1024;
/** As the API server allows for names of Secrets. */
export const maxSecretName = 253;
/** 256 images of 1,024 characters, twice for escapes. */
export const maxBodyBytes = 512 * 1024;
/** No registry answers faster than the minimum. The API server's proxy itself has no limit. */
const deadlines = { leastMs: 10, mostMs: 60_000 };

const pullPolicies: readonly PullPolicy[] = ['Always', 'IfNotPresent', 'Never'];

export interface ImagesRequest {
  /** Absent: a text for another audience, which any stranger may send. The log does not hide such texts. */
  readonly token: Secret | undefined;
  readonly namespace: string;
  readonly images: readonly { readonly image: string; readonly pullPolicy: PullPolicy }[];
  /** Names. Without any, those of the service account count. */
  readonly pullSecrets: readonly string[];
  readonly serviceAccount: string;
  readonly deadlineMs: number;
  /** How old facts of tags may be, at least 5 s. Default: as for a pod. */
  readonly maxAgeMs?: number;
}

/** The request cannot be used. The message names the field. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
  readonly code = 'invalid';
  readonly temporary = false;
}

/** @throws InvalidRequest */
export function parseImagesRequest(body: Uint8Array): ImagesRequest {
  const fields = object(parsed(body), 'the body', [
    'token',
    'namespace',
    'images',
    'pullSecrets',
    'serviceAccount',
    'deadlineMs',
    'maxAgeMs',
  ]);
  const namespace = text(fields, 'namespace', 63);
  if (!isNamespaceName(namespace)) throw new InvalidRequest('namespace is not a valid namespace name');
  const serviceAccount = text(fields, 'serviceAccount', 253);
  if (!isObjectName({ namespace, name: serviceAccount }))
    throw new InvalidRequest('serviceAccount is not a valid service account name');
  const { deadlineMs } = fields;
  if (typeof deadlineMs !== 'number' || !(deadlineMs > 0))
    throw new InvalidRequest('deadlineMs is not a positive number');
  const { maxAgeMs } = fields;
  if (maxAgeMs !== undefined && (typeof maxAgeMs !== 'number' || !(maxAgeMs >= 0)))
    throw new InvalidRequest('maxAgeMs is not a number of milliseconds');
  const token = text(fields, 'token', maxTokenLength);
  return {
    token: claimsFactsAudience(token) ? secret(token, 'others') : undefined,
    namespace,
    images: list(fields, 'images', maxImages).map(imageOf),
    pullSecrets: list(fields, 'pullSecrets', maxPullSecrets).map((name) =>
      text({ name }, 'name', maxSecretName),
    ),
    serviceAccount,
    deadlineMs: Math.min(deadlines.mostMs, Math.max(deadlines.leastMs, deadlineMs)),
    ...(maxAgeMs !== undefined && { maxAgeMs: Math.max(confirmedMs, maxAgeMs) }),
  };
}

function parsed(body: Uint8Array): JsonObject {
  try {
    return parseObject(body);
  } catch (error) {
    if (error instanceof InvalidDocument)
      throw new InvalidRequest(`the body cannot be read: ${error.message}`);
    throw error;
  }
}

function imageOf(value: unknown): ImagesRequest['images'][number] {
  const fields = object(value, 'an image', ['image', 'pullPolicy']);
  const pullPolicy = pullPolicies.find((name) => name === fields['pullPolicy']);
  if (pullPolicy === undefined) throw new InvalidRequest('pullPolicy is unknown');
  return { image: text(fields, 'image', maxImageLength), pullPolicy };
}

function object(value: unknown, what: string, known: readonly string[]): JsonObject {
  const fields = asObject(value);
  if (!fields) throw new InvalidRequest(`${what} is not an object`);
  if (Object.keys(fields).some((field) => !known.includes(field)))
    throw new InvalidRequest(`${what} has a field besides ${known.join(', ')}`);
  return fields;
}

function list(fields: JsonObject, field: string, max: number): readonly unknown[] {
  const value = fields[field];
  if (!Array.isArray(value) || value.length > max)
    throw new InvalidRequest(`${field} is not a list of at most ${max}`);
  return value;
}

function text(fields: JsonObject, field: string, maxLength: number): string {
  const value = fields[field];
  if (typeof value !== 'string' || value === '' || value.length > maxLength)
    throw new InvalidRequest(`${field} is not a string of 1 to ${maxLength} characters`);
  return value;
}

/**
 * Whether the token claims this audience, unchecked: the API server need not check other tokens, which are
 * people's other credentials (RFC 7519, 4.1.3).
 */
export function claimsFactsAudience(token: string): boolean {
  const [, payload = '', signature, ...more] = token.split('.');
  if (signature === undefined || more.length > 0) return false;
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { aud?: unknown } | null;
    return [claims?.aud].flat().includes(factsAudience);
  } catch {
    return false;
  }
}
