/**
 * `AdmissionReview` of `admission.k8s.io/v1` (kubernetes staging/src/k8s.io/api/admission/v1/types.go). The
 * API server refuses an answer with another apiVersion, kind or uid than its request.
 */
import type { AdmissionRequest, AdmissionResponse } from '../kube/api/objects.ts';
import { sizeOfJson } from '../http/json.ts';
import { isRecord } from '../names/values.ts';

export type BadReviewCode = 'not-json' | 'not-a-review' | 'too-large';

/** Why a body is no review. The message is one line for the client. */
export class BadReview extends Error {
  readonly code: BadReviewCode;
  constructor(code: BadReviewCode, message: string) {
    super(message);
    this.name = 'BadReview';
    this.code = code;
  }
}

const apiVersion = 'admission.k8s.io/v1';

/** A uid of the API server has 36 characters; it is echoed, so it is bounded. */
const maxUid = 256;

/** Reads a review. Only the envelope is checked: the object in it may be anything. @throws BadReview */
export function parseReview(body: Buffer): AdmissionRequest {
  const review = parseJson(body);
  if (!isRecord(review) || review['kind'] !== 'AdmissionReview')
    throw new BadReview('not-a-review', 'the body is not an AdmissionReview');
  if (review['apiVersion'] !== apiVersion)
    throw new BadReview('not-a-review', `only AdmissionReviews of ${apiVersion} are understood`);
  const { request } = review;
  if (!isRecord(request)) throw new BadReview('not-a-review', 'the AdmissionReview has no request');
  const { uid, kind, operation, namespace = '' } = request;
  if (typeof uid !== 'string' || uid === '' || uid.length > maxUid)
    throw new BadReview('not-a-review', 'the request of the AdmissionReview has no usable uid');
  if (!isRecord(kind) || typeof kind['kind'] !== 'string' || typeof operation !== 'string')
    throw new BadReview('not-a-review', 'the request of the AdmissionReview lacks kind or operation');
  if (typeof namespace !== 'string')
    throw new BadReview('not-a-review', 'the namespace of the AdmissionReview is not a string');
  return request as unknown as AdmissionRequest;
}

/**
 * The largest pod that etcd stores (1.5 MiB) has fewer than 200,000 values, and an update has it twice. A
 * body of 7 MiB could have 2,400,000 empty objects, which take 200 MiB of memory.
 */
export const maxValues = 400_000;

/** Memory of a parsed value (Node 24; an empty object in a list), and more if no other object has its key. */
const bytesPerValue = 64;
const bytesPerKey = 96;

/** Nested empty lists have a value in every two bytes. */
const mostPerByte = bytesPerValue / 2;
/** Smaller bodies cannot have too many values. */
const smallBytes = 65_536;

/**
 * Counting takes a twentieth of an admission, so a small body need not be counted while there is room.
 * @param isQuiet the most that a small body can take will do
 * @returns roughly, the memory of the parsed body
 * @throws BadReview `too-large` for too many values
 */
export function parsedBytes(body: Buffer, isQuiet: boolean): number {
  if (isQuiet && body.length <= smallBytes) return body.length * mostPerByte;
  const { values, keys } = sizeOfJson(body);
  if (values > maxValues) throw new BadReview('too-large', `the body has more than ${maxValues} values`);
  return values * bytesPerValue + keys * bytesPerKey;
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0)
    throw new BadReview('not-json', 'the body is empty; an AdmissionReview was expected');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // The parser's own message quotes the body, which can hold secrets.
    throw new BadReview('not-json', 'the body is not one JSON document');
  }
}

export function formatReview(response: AdmissionResponse): string {
  const { patch } = response;
  const text = JSON.stringify({ ...response, patch: undefined });
  // Base64 needs no escapes, so the longest part by far is spared the search for them.
  const withPatch = patch === undefined ? text : `${text.slice(0, -1)},"patch":"${patch}"}`;
  return `{"apiVersion":"${apiVersion}","kind":"AdmissionReview","response":${withPatch}}`;
}
