/**
 * Image facts that the controller looks up, with the credentials of its agents. Requests go through the API
 * server's proxy of Services. The controller does not see the user's credentials: each request has a token of
 * a service account, which no other program accepts (`callers.ts`).
 */
import * as v from 'valibot';
import { LoadingCache } from '../async/loading-cache.ts';
import { systemClock } from '../async/clock.ts';
import type { FactsByImage, FactsOfPod, PodFactsRequest } from '../cluster/facts-of-pod.ts';
import type { ServiceAccountName } from '../credentials/credential.ts';
import { readShape } from '../http/json.ts';
import { failedFacts, type ImageFacts } from '../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../images/facts/wire.ts';
import { createReferenceCache, InvalidReference, maxImageLength } from '../images/references/reference.ts';
import type { KubeClient } from '../kube/api/client.ts';
import { isCode } from '../kube/api/errors.ts';
import { paths } from '../kube/api/paths.ts';
import { isArchitecture, maxArchitectures } from '../names/architecture.ts';
import { messageOf } from '../names/printable.ts';
import { amd64Levels } from '../nodes/amd64-level.ts';
import { reveal, secret, type Secret } from '../telemetry/secret.ts';
import {
  factsAudience,
  factsPath,
  factsPortName,
  maxImages,
  maxPullSecrets,
  maxSecretName,
} from './request.ts';

/** The least that the API server allows (kubernetes pkg/apis/authentication/validation). */
const tokenSeconds = 600;
/** A token is replaced this long before its end. */
const marginMs = 120_000;
const maxTokens = 10_000;
/** Tries of a request, with a pause: the controller limits requests. */
const tries = 5;
/** The longest names a Secret and suggests another. */
const maxHint = 1000;
const pauseMs = 1000;

interface ReleaseName {
  readonly namespace: string;
  readonly name: string;
}

export interface ClusterFactsOptions {
  /** Waits longer than the lookups may take. */
  readonly client: KubeClient;
  readonly release: ReleaseName;
  /** The account whose token is sent. Default: `default` in each pod's namespace. */
  readonly serviceAccount: ServiceAccountName | undefined;
  readonly onProblem: (message: string) => void;
  readonly stop: AbortSignal;
}

export function factsService({ namespace, name }: ReleaseName): string {
  return `${namespace}/${name}-controller`;
}

export function createClusterFacts(options: ClusterFactsOptions): FactsOfPod {
  const { client, release, serviceAccount, onProblem, stop } = options;
  const tokens = new LoadingCache<Secret>({ clock: systemClock, maxEntries: maxTokens });
  const parse = createReferenceCache();

  function invalid(image: string): ImageFacts | undefined {
    try {
      parse(image);
      if (image.length <= maxImageLength) return undefined;
      throw new InvalidReference(`it is longer than ${maxImageLength} characters`);
    } catch (error) {
      if (!(error instanceof InvalidReference)) throw error;
      return failedFacts(image, { code: 'invalid-reference', message: error.message }, systemClock.now());
    }
  }

  async function ask(ofPod: PodFactsRequest): Promise<readonly ImageFacts[]> {
    const { namespace, uses, pullSecrets, budgetMs, maxAgeMs } = ofPod;
    const token = await tokenFor(namespace);
    const body = {
      token: reveal(token),
      namespace,
      images: uses.slice(0, maxImages).map(({ image, pullPolicy }) => ({ image, pullPolicy })),
      // The API server takes any names for pull secrets of a pod.
      pullSecrets: pullSecrets.names.filter(({ length }) => length <= maxSecretName).slice(0, maxPullSecrets),
      serviceAccount: pullSecrets.serviceAccount ?? ofPod.serviceAccount?.name ?? 'default',
      deadlineMs: budgetMs,
      ...(maxAgeMs !== undefined && { maxAgeMs }),
    };
    const service = `https:${release.name}-controller:${factsPortName}`;
    const path = `/api/v1/namespaces/${release.namespace}/services/${service}/proxy${factsPath}`;
    const { facts } = await client.create<{ readonly facts?: unknown }>(path, body, { signal: stop });
    if (!Array.isArray(facts))
      throw new TypeError('the controller sent no facts; it may have another version');
    return facts.map(readServedFacts);
  }

  async function tokenFor(podNamespace: string): Promise<Secret> {
    const { namespace, name } = serviceAccount ?? { namespace: podNamespace, name: 'default' };
    return await tokens.get(`${namespace}/${name}`, async () => {
      const request = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [factsAudience], expirationSeconds: tokenSeconds },
      };
      const path = `${paths.serviceAccounts(namespace, name)}/token`;
      const options = { signal: stop };
      const { status } = await client.create<{ status?: { token?: string } }>(path, request, options);
      if (!status?.token) throw new TypeError('the API server issued no token');
      const expiresAt = systemClock.monotonic() + tokenSeconds * 1000 - marginMs;
      return { value: secret(status.token), expiresAt };
    });
  }

  async function askAgain(request: PodFactsRequest): Promise<readonly ImageFacts[]> {
    for (let left = tries - 1; ; left -= 1) {
      try {
        return await ask(request);
      } catch (error) {
        if (left === 0 || !isCode(error, 'too-many-requests')) throw error;
        await systemClock.sleep(error.retryAfterMs ?? pauseMs, stop);
      }
    }
  }

  return async (request): Promise<FactsByImage> => {
    const found = new Map(
      request.uses.flatMap(({ image }) => invalid(image) ?? []).map((facts) => [facts.image, facts]),
    );
    const uses = request.uses.filter(({ image, pullPolicy }) => pullPolicy !== 'Never' && !found.has(image));
    if (uses.length === 0) return found;
    try {
      for (const facts of await askAgain({ ...request, uses })) found.set(facts.image, facts);
    } catch (error) {
      stop.throwIfAborted();
      const why = `${messageOf(error)}${hintFor(error)}`;
      onProblem(`images of namespace ${request.namespace} could not be looked up: ${why}`);
    }
    return found;
  };
}

const advice = '--local looks up images from this machine';

function hintFor(error: unknown): string {
  if (isCode(error, 'unavailable', 'timeout'))
    return `; is the controller running, and can the API server reach it? ${advice}`;
  if (!isCode(error, 'forbidden', 'not-found')) return '';
  // The controller itself names the right that is missing.
  if (error.message.includes(' archwright: ')) return `. ${advice}`;
  return (
    '; this needs the right to create serviceaccounts/token in that namespace, and services/proxy in the namespace of archwright ' +
    `(docs/use/explain.md). ${advice}`
  );
}

/** What only the controller adds to facts: what failures on nodes have shown, and what a person can do. */
const additions = v.object({
  brokenOn: v.exactOptional(
    v.pipe(
      v.array(v.pipe(v.string(), v.check(isArchitecture, 'must be an architecture'))),
      v.maxLength(maxArchitectures),
    ),
  ),
  requiredLevel: v.exactOptional(v.picklist(amd64Levels)),
  error: v.exactOptional(
    v.object({
      hint: v.exactOptional(
        v.pipe(
          v.string(),
          v.transform((hint) => hint.slice(0, maxHint)),
        ),
      ),
    }),
  ),
});

/** @throws InvalidFacts */
function readServedFacts(value: unknown): ImageFacts {
  const facts = readFacts(value);
  const fail = (where: string, problem: string) => new InvalidFacts(where, problem);
  const { error: { hint } = {}, ...shown } = readShape(additions, value, fail);
  const { error } = facts;
  return { ...facts, ...shown, ...(error && hint !== undefined && { error: { ...error, hint } }) };
}
