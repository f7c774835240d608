/**
 * Body of `POST /v1/facts`: one pod's images and the caller's token. `explain` and `report` send it through
 * the API server's Service proxy. Unknown, missing or invalid fields are errors. Messages quote no value.
 */
import * as v from 'valibot';
import { isNamespaceName, isObjectName } from '../credentials/credential.ts';
import { confirmedMs } from '../images/facts/facts.ts';
import { maxImageLength } from '../images/references/reference.ts';
import { parseObject, readShape } from '../http/json.ts';
import { secret } from '../telemetry/secret.ts';

/**
 * Audience of the caller's token. No other program accepts it, least of all the API server, so the controller
 * learns nothing that it could use elsewhere.
 */
export const factsAudience = 'arch.example/facts';

export const factsPath = '/v1/facts';

/** Port of the controller's Service. */
export const factsPortName = 'facts';

/** `explain` looks up so many (`facts-of-pod.ts`). */
export const maxImages = 256;
/** So many are read of a pod (`pull-secrets.ts`). */
export const maxPullSecrets = 20;
/** A token of a service account has 1 to 2 KiB. */
const maxTokenLength = 8192;
/** The API server's limit for names of Secrets. */
export const maxSecretName = 253;
/** 256 images of 1,024 characters, twice for escapes. */
export const maxBodyBytes = 512 * 1024;
/** No registry answers faster than the minimum. The API server's proxy itself has no limit. */
const deadlines = { leastMs: 10, mostMs: 60_000 };

/** The request cannot be used. The message names the field. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
}

const text = (maxLength: number) => v.pipe(v.string(), v.nonEmpty(), v.maxLength(maxLength));

const request = v.strictObject({
  /** Absent: a text for another audience, which any stranger may send. The log does not hide such texts. */
  token: v.pipe(
    text(maxTokenLength),
    v.transform((token) => (claimsFactsAudience(token) ? secret(token, 'others') : undefined)),
  ),
  namespace: v.pipe(v.string(), v.check(isNamespaceName, 'must be a name of a namespace')),
  images: v.pipe(
    v.array(v.unknown()),
    v.maxLength(maxImages),
    v.array(
      v.strictObject({
        image: text(maxImageLength),
        pullPolicy: v.picklist(['Always', 'IfNotPresent', 'Never']),
      }),
    ),
  ),
  /** Names. Without any, those of the service account count. */
  pullSecrets: v.pipe(v.array(text(maxSecretName)), v.maxLength(maxPullSecrets)),
  serviceAccount: v.pipe(
    v.string(),
    v.check((name) => isObjectName({ namespace: 'any', name }), 'must be a name of a service account'),
  ),
  deadlineMs: v.pipe(
    v.number(),
    v.gtValue(0),
    v.toMinValue(deadlines.leastMs),
    v.toMaxValue(deadlines.mostMs),
  ),
  /** How old facts of tags may be. Default: as for a pod. */
  maxAgeMs: v.exactOptional(v.pipe(v.number(), v.minValue(0), v.toMinValue(confirmedMs))),
});

export type ImagesRequest = v.InferOutput<typeof request>;

/** @throws InvalidRequest, InvalidDocument */
export function parseImagesRequest(body: Uint8Array): ImagesRequest {
  return readShape(
    request,
    parseObject(body),
    (where, problem) => new InvalidRequest(`${where === '' ? 'the body' : where} ${problem}`),
  );
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
