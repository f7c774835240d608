/**
 * The body of `POST /v1/facts`. It is refused as a whole where it is not what the API says: its sender is one of our
 * own programs, so a field that is misspelled or missing is a fault to be seen, not a wish to be guessed.
 */
import * as z from 'zod';
import { parseAuths } from '../src/credentials/auths.ts';
import { CredentialError, type CredentialSource } from '../src/credentials/credential.ts';
import type { PullPolicy } from '../src/images/facts.ts';
import { ApiError } from './api-error.ts';

/** A pod names some dozens of images; this is room for many pods in one request. */
export const maxImages = 1000;
/** As in image facts: nothing longer could be answered. */
const maxImageLength = 1024;
/** Below this no registry answers, above it nobody waits: the API server gives a webhook 30 s at most. */
export const deadlineLimits = { leastMs: 10, mostMs: 30_000 };

const schema = z.strictObject({
  images: z
    .array(
      z.strictObject({
        image: z.string().min(1).max(maxImageLength),
        pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
      }),
    )
    .max(maxImages),
  /** Checked by `parseAuths`. */
  auths: z.unknown().optional(),
  deadlineMs: z.number().positive(),
});

export interface FactsRequest {
  readonly images: readonly { readonly image: string; readonly pullPolicy: PullPolicy }[];
  readonly deadlineMs: number;
  /** The pod's credentials, for this request only. */
  readonly pullSecrets: CredentialSource;
}

/**
 * Reads a body.
 * @returns the request, its deadline within `deadlineLimits`
 * @throws ApiError `bad-request`; its message never quotes a value, because values may be passwords
 */
export function parseFactsRequest(body: Buffer): FactsRequest {
  let json: unknown;
  try {
    json = JSON.parse(utf8(body));
  } catch {
    throw new ApiError('bad-request', 'the body is no JSON');
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw badRequest(parsed.error);
  const { images, auths, deadlineMs } = parsed.data;
  return {
    images,
    deadlineMs: Math.min(deadlineLimits.mostMs, Math.max(deadlineLimits.leastMs, deadlineMs)),
    pullSecrets: readAuths(auths),
  };
}

function readAuths(auths: unknown): CredentialSource {
  try {
    return parseAuths(auths);
  } catch (error) {
    if (error instanceof CredentialError) throw new ApiError('bad-request', error.message, 'auths');
    throw error;
  }
}

/** @throws TypeError where the bytes are no UTF-8 */
function utf8(body: Buffer): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(body);
}

function badRequest(error: z.ZodError): ApiError {
  const issue = error.issues[0];
  const where = (issue?.path ?? []).map(String).join('.').slice(0, 200);
  const what = (issue?.message ?? 'not what the API says').slice(0, 300);
  return new ApiError('bad-request', where === '' ? what : `${where}: ${what}`, where);
}
