/**
 * The body of `POST /v1/facts`. Unknown, missing or invalid fields are errors: the sender is archwright too,
 * so they are bugs that must be noticed.
 */
import { isUtf8 } from 'node:buffer';
import * as v from 'valibot';
import { parseAuths } from '../../src/credentials/auths.ts';
import {
  CredentialError,
  isNamespaceName,
  isObjectName,
  type CredentialSource,
  type ServiceAccountName,
} from '../../src/credentials/credential.ts';
import { parseJson } from '../../src/http/json.ts';
import { readShape } from '../../src/http/shape.ts';
import { ApiError } from './api-error.ts';

/** A pod has some dozens of images at most. */
export const maxImages = 1000;
/** As in image facts (`images/facts/wire.ts`). */
const maxImageLength = 1024;
/** No registry answers faster than the minimum. The API server limits a webhook to 30 s. */
export const deadlineLimits = { leastMs: 10, mostMs: 30_000 };

export interface FactsRequest {
  readonly images: readonly {
    readonly image: string;
    /** How old the answer may be. Absent in the body: Infinity, which JSON has not. */
    readonly maxAgeMs: number;
  }[];
  readonly deadlineMs: number;
  /** The pod's credentials, for this request only. */
  readonly pullSecrets: CredentialSource;
  readonly serviceAccount?: ServiceAccountName;
  /** The pod's: namespaces share the agent fairly. */
  readonly namespace?: string;
}

const body = v.strictObject({
  images: v.pipe(
    v.array(v.unknown()),
    v.maxLength(maxImages),
    v.array(
      v.strictObject({
        image: v.pipe(v.string(), v.nonEmpty(), v.maxLength(maxImageLength)),
        maxAgeMs: v.optional(v.pipe(v.number(), v.minValue(0)), Number.POSITIVE_INFINITY),
      }),
    ),
  ),
  deadlineMs: v.pipe(v.number(), v.finite(), v.gtValue(0)),
  auths: v.optional(v.unknown()),
  namespace: v.exactOptional(v.pipe(v.string(), v.check(isNamespaceName, 'must be a name of a namespace'))),
  serviceAccount: v.exactOptional(
    v.pipe(
      v.strictObject({ namespace: v.string(), name: v.string() }),
      v.check(isObjectName, 'must have names of a namespace and a service account'),
    ),
  ),
});

/** @returns deadline within `deadlineLimits` @throws ApiError `bad-request`, which quotes no values */
export function parseFactsRequest(bytes: Buffer): FactsRequest {
  const json = isUtf8(bytes) ? parseJson(bytes.toString()) : undefined;
  if (json === undefined) throw new ApiError('bad-request', 'the body is not JSON');
  const { auths, deadlineMs, ...request } = readShape(
    body,
    json,
    (where, problem) => new ApiError('bad-request', `${where === '' ? 'the body' : where} ${problem}`),
  );
  return {
    ...request,
    deadlineMs: Math.min(deadlineLimits.mostMs, Math.max(deadlineLimits.leastMs, deadlineMs)),
    pullSecrets: readAuths(auths),
  };
}

function readAuths(auths: unknown): CredentialSource {
  try {
    return parseAuths(auths);
  } catch (error) {
    if (error instanceof CredentialError) throw new ApiError('bad-request', error.message);
    throw error;
  }
}
