/** Builders of image facts and requests for them. */
import { createHash } from 'node:crypto';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import type { FactsErrorCode, ImageFacts, ImageRequest } from '../../src/images/facts/facts.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { secret } from '../../src/telemetry/secret.ts';

/** When the facts below are confirmed. */
export const confirmedAt = '2026-11-21T12:00:00.000Z';

/** As the settings have them by default. */
export const defaultCacheTimes = () => ({ ifNotPresentCacheTime: 7 * 86_400_000 });

export function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Facts of these platforms from memory: `linux/arm64 windows/amd64`; words without a slash are Linux architectures. */
export function facts(platforms: string, more: Partial<ImageFacts> = {}): ImageFacts {
  return {
    image: 'image',
    platforms: platforms
      .split(' ')
      .filter(Boolean)
      .map((text) => {
        const [first = '', second, variant] = text.split('/');
        const [os, architecture] = second === undefined ? ['linux', first] : [first, second];
        return { os, architecture, ...(variant === undefined ? {} : { variant }) };
      }),
    source: 'memory',
    credentialSource: 'anonymous',
    endpoint: 'public.example',
    confirmedAt: '2026-11-21T00:00:00Z',
    stale: false,
    ...more,
  };
}

/** Facts of an image for amd64 and arm64 that a registry has just confirmed. */
export function factsOf(image: string, more: Partial<ImageFacts> = {}): ImageFacts {
  return facts('amd64 arm64', {
    image,
    digest: parseReference(image).digest ?? digestOf(image),
    mediaType: 'application/vnd.oci.image.index.v1+json',
    source: 'registry',
    endpoint: 'registry-1.docker.io',
    confirmedAt,
    ...more,
  });
}

/** Facts of a failed lookup. */
export function failureOf(image: string, code: FactsErrorCode, retryAfterMs?: number): ImageFacts {
  const { digest: _, mediaType: __, ...rest } = factsOf(image, { platforms: [], endpoint: '' });
  const error = { code, message: `it is ${code}`, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return { ...rest, error };
}

/** A credential of a pull secret with this id. */
export function pullCredential(id: string): MatchedCredential {
  return {
    credential: { username: id, password: secret(`password of ${id}`) },
    source: 'pull-secret',
    key: 'docker.io',
    origin: `default/${id}`,
    id,
  };
}

interface RequestDetails extends Partial<Pick<ImageRequest, 'maxAgeMs' | 'namespace' | 'serviceAccount'>> {
  /** Ids of pull credentials. */
  readonly credentials?: readonly string[];
}

const week = 7 * 86_400_000;

/** A request as of a pod that pulls `IfNotPresent`. */
export function requestFor(image: string, { credentials = [], ...more }: RequestDetails = {}): ImageRequest {
  const reference = parseReference(image);
  const maxAgeMs = reference.digest === undefined ? week : Number.POSITIVE_INFINITY;
  return { image, reference, maxAgeMs, pullCredentials: credentials.map(pullCredential), ...more };
}
