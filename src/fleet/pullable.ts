/**
 * Which credential groups can pull the images of a repository. One agent of each group gets a request, and
 * may answer it from memory.
 *
 * A registry grants access to repositories, so one image stands for all of its repository, in the credential
 * scope of the request. Results expire: refusals sooner than grants, since they keep pods away from nodes, and
 * unreachable registries soonest, since networks recover by themselves.
 */
import { LoadingCache } from '../async/loading-cache.ts';
import { unlessAborted } from '../async/wait.ts';
import { scopedKey, scopeOf } from '../images/cache/entry.ts';
import { type FactsError, type ImageFacts, type ImageRequest, ofAnyAge } from '../images/facts/facts.ts';
import type { CredentialGroup } from './agents.ts';
import { lookUp, type LookupContext } from './lookup.ts';

/** Which groups can pull an image, as far as it is known; with fewer than two groups both lists are empty. */
export interface PullableGroups {
  readonly able: readonly CredentialGroup[];
  /** Refused by the registry, or without a way to it. */
  readonly unable: readonly CredentialGroup[];
}

/** A few hundred bytes each; a cluster uses a few hundred repositories, and groups come from node pools. */
const maxEntries = 20_000;

/** @param closing ends the checks */
export function createPullable(context: LookupContext, closing: AbortSignal) {
  const { agents, clock } = context;
  const results = new LoadingCache<boolean | undefined>({ clock, maxEntries });

  /** A lookup by the owner of the repository in a group. */
  async function check(request: ImageRequest, { fingerprint }: CredentialGroup) {
    const ranked = agents.byGroup(request.reference.repository).get(fingerprint) ?? [];
    const [value, minutes] = resultOf(await lookUp(context, ofAnyAge(request), [ranked], closing));
    return { value, expiresAt: clock.monotonic() + minutes * 60_000 };
  }

  /** What is known when `signal` aborts. Checks go on after that. */
  return async (request: ImageRequest, signal: AbortSignal): Promise<PullableGroups> => {
    const { groups } = agents.view;
    if (groups.length < 2) return { able: [], unable: [] };
    const canPull = new Map<CredentialGroup, boolean | undefined>();
    const checks = groups.map(async (group) => {
      canPull.set(group, await results.get(keyOf(request, group), () => check(request, group)));
    });
    await unlessAborted(Promise.all(checks), signal).catch(() => undefined);
    const groupsThat = (can: boolean) => groups.filter((group) => canPull.get(group) === can);
    return { able: groupsThat(true), unable: groupsThat(false) };
  };
}

/** It reveals nothing of the credentials. */
function keyOf(request: ImageRequest, { fingerprint }: CredentialGroup): string {
  // Neither repositories nor scopes have line breaks.
  const name = request.shortName ?? request.reference.repository;
  return `${scopedKey(name, scopeOf(request))}\n${fingerprint}`;
}

/**
 * What an answer shows of the group, and for how many minutes. Missing images, overrides (which need no registry)
 * and older facts (while a registry fails) show nothing.
 */
function resultOf(facts: ImageFacts | FactsError): [canPull: boolean | undefined, minutes: number] {
  if ('code' in facts || facts.source === 'override' || facts.stale) return [undefined, 1];
  const code = facts.error?.code ?? 'not-an-image';
  if (code === 'not-an-image') return [true, 60];
  if (code === 'unauthorized' || code === 'forbidden') return [false, 10];
  return code === 'unavailable' ? [false, 2] : [undefined, 1];
}
