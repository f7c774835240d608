/**
 * The body of `POST /v1/facts`. Unknown, missing or invalid fields are errors: the sender is archwright too,
 * so they are bugs that must be noticed.
 */
import { isUtf8 } from 'node:buffer';
import { parseAuths } from '../../src/credentials/auths.ts';
import {
  CredentialError,
  isNamespaceName,
  isObjectName,
  type CredentialSource,
  type ServiceAccountName,
} from '../../src/credentials/credential.ts';
import { parseJson, type JsonObject } from '../../src/http/json.ts';
import { isRecord } from '../../src/names/values.ts';
import { ApiError } from './api-error.ts';

/** A pod has some dozens of images at most. */
export const maxImages = 1000;
/** The limit of image facts. */
const maxImageLength = 1024;
/** Enough of a misspelled field's name to find it. */
const maxFieldLength = 64;
/** No registry answers faster than the minimum. The API server limits a webhook to 30 s. */
export const deadlineLimits = { leastMs: 10, mostMs: 30_000 };

interface ImageRequest {
  readonly image: string;
  /** How old the answer may be. Absent in the body: Infinity, which JSON has not. */
  readonly maxAgeMs: number;
}

export interface FactsRequest {
  readonly images: readonly ImageRequest[];
  readonly deadlineMs: number;
  /** The pod's credentials, for this request only. */
  readonly pullSecrets: CredentialSource;
  readonly serviceAccount?: ServiceAccountName;
  /** The pod's: namespaces share the agent fairly. */
  readonly namespace?: string;
}

/** @returns deadline within `deadlineLimits` @throws ApiError `bad-request`, which quotes no values */
export function parseFactsRequest(body: Buffer): FactsRequest {
  const json = isUtf8(body) ? parseJson(body.toString()) : undefined;
  if (json === undefined) throw new ApiError('bad-request', 'the body is not JSON');
  const fields = ['images', 'namespace', 'auths', 'serviceAccount', 'deadlineMs'];
  const { images, namespace, auths, serviceAccount, deadlineMs } = object(json, '', fields);
  return {
    images: readImages(images),
    deadlineMs: readDeadline(deadlineMs),
    pullSecrets: readAuths(auths),
    ...(namespace !== undefined && { namespace: readNamespace(namespace) }),
    ...(serviceAccount !== undefined && { serviceAccount: readServiceAccount(serviceAccount) }),
  };
}

function readImages(value: unknown): ImageRequest[] {
  if (!Array.isArray(value)) throw wrong('images', 'expected an array');
  if (value.length > maxImages) throw wrong('images', `expected at most ${maxImages}`);
  return value.map((item: unknown, index) => {
    const where = `images.${index}`;
    const { image, maxAgeMs = Number.POSITIVE_INFINITY } = object(item, where, ['image', 'maxAgeMs']);
    if (typeof image !== 'string' || image === '' || image.length > maxImageLength)
      throw wrong(`${where}.image`, `expected a string of 1 to ${maxImageLength} characters`);
    if (typeof maxAgeMs !== 'number' || !(maxAgeMs >= 0))
      throw wrong(`${where}.maxAgeMs`, 'expected a number of milliseconds');
    return { image, maxAgeMs };
  });
}

function readDeadline(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0)
    throw wrong('deadlineMs', 'expected a positive number of milliseconds');
  return Math.min(deadlineLimits.mostMs, Math.max(deadlineLimits.leastMs, value));
}

function readNamespace(value: unknown): string {
  if (typeof value !== 'string' || !isNamespaceName(value))
    throw wrong('namespace', 'expected a valid name of a namespace');
  return value;
}

function readAuths(auths: unknown): CredentialSource {
  try {
    return parseAuths(auths);
  } catch (error) {
    if (error instanceof CredentialError) throw new ApiError('bad-request', error.message, 'auths');
    throw error;
  }
}

function readServiceAccount(value: unknown): ServiceAccountName {
  const { namespace, name } = object(value, 'serviceAccount', ['namespace', 'name']);
  if (typeof namespace !== 'string' || typeof name !== 'string')
    throw wrong('serviceAccount', 'expected a namespace and a name');
  const account = { namespace, name };
  if (!isObjectName(account))
    throw wrong('serviceAccount', 'expected valid names of a namespace and a service account');
  return account;
}

/** @throws ApiError unless it is an object with known fields only */
function object(value: unknown, where: string, fields: readonly string[]): JsonObject {
  if (!isRecord(value)) throw wrong(where, 'expected an object');
  const unknown = Object.keys(value).find((field) => !fields.includes(field));
  if (unknown !== undefined)
    throw wrong(where, `there is no field ${JSON.stringify(unknown.slice(0, maxFieldLength))}`);
  return value;
}

function wrong(where: string, what: string): ApiError {
  return new ApiError('bad-request', where === '' ? what : `${where}: ${what}`, where);
}
