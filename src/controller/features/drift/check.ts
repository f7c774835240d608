/**
 * Checks one tag, with the credentials of a pod that runs it. The agent that owns its repository confirms the
 * digest by one HEAD. The platforms of running digests are looked up only if the tag names another digest.
 */
import { CredentialError } from '../../../credentials/credential.ts';
import type { FactsErrorCode, ImageFacts, ImageRequest } from '../../../images/facts/facts.ts';
import { defaultOs, type FullPlatform } from '../../../names/platform.ts';
import { noNodes } from '../../../nodes/node-classes.ts';
import { ofAnyAge } from '../../../images/image-request.ts';
import { parseReference } from '../../../images/references/reference.ts';
import type { DriftedTag } from '../../../images/sources/drifted-tags.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { pulledReferences, requestOfPod } from '../../pods/pulled-images.ts';
import { changeOf, type PlatformChange } from './changes.ts';
import { runningDigests, type RunningTag, type TagUse } from './tags.ts';

export type CheckResult =
  /** `change`: the difference from running pods; `pulled`: their digests. */
  | {
      readonly kind: 'known';
      readonly digest: string;
      readonly change: PlatformChange | undefined;
      readonly pulled: readonly string[];
    }
  /** The check failed. Known results stay. */
  | { readonly kind: 'failed'; readonly code: FactsErrorCode }
  /** There is nothing to check: an override decides, or no pod has pulled it. */
  | { readonly kind: 'skipped' };

/** A lookup of the fleet takes 15 s at most. */
const checkMs = 20_000;
/** More digests of one tag are not compared; those of most pods count. */
const maxCompared = 3;

interface CheckOptions {
  readonly leader: LeaderContext;
  readonly tag: RunningTag;
  /** The use that gives the credentials. */
  readonly use: TagUse;
  readonly known: DriftedTag | undefined;
}

/** @throws the reason of the leader's signal if it aborts */
export async function checkTag(options: CheckOptions): Promise<CheckResult> {
  const { signal, log } = options.leader;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(checkMs)]);
  try {
    return await new Check(options, limit).run();
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) return { kind: 'failed', code: 'timeout' };
    if (error instanceof CredentialError) return { kind: 'failed', code: 'unauthorized' };
    // A tag that cannot be checked must not stop the others.
    log.error({ err: error, image: options.tag.image }, 'a check for drift failed unexpectedly');
    return { kind: 'failed', code: 'unavailable' };
  }
}

class Check {
  readonly #options: CheckOptions;
  readonly #signal: AbortSignal;
  readonly #running: ReadonlyMap<string, readonly RunningPod[]>;

  constructor(options: CheckOptions, signal: AbortSignal) {
    const { leader, tag } = options;
    this.#options = options;
    this.#signal = signal;
    this.#running = runningDigests(tag, leader.caches.nodes);
  }

  async run(): Promise<CheckResult> {
    const { leader, use, known } = this.#options;
    const { cache, configuration } = leader;
    const request = await requestOfPod(leader, use.pod, use.image, this.#signal);
    const remembered = cache.peek(ofAnyAge(request));
    if (remembered?.source === 'override' || !isPulled(this.#options.tag)) return { kind: 'skipped' };
    // The check before is older than that, so the agent confirms what it remembers by one HEAD.
    const maxAgeMs = configuration().driftInterval / 2;
    const facts = await cache.get({ ...request, maxAgeMs }, { signal: this.#signal });
    const { digest, error, stale } = facts;
    if (digest === undefined || stale || (error && error.code !== 'not-an-image'))
      return { kind: 'failed', code: error?.code ?? 'unavailable' };
    const pulled = [...this.#running.keys()].filter((each) => each !== digest);
    const old = pulled.slice(0, maxCompared);
    if (old.length === 0) return this.#withoutPulled(facts, digest, remembered);
    if (known?.digest === digest) return { kind: 'known', digest, change: known, pulled };
    // Facts of a tag that constrains nothing have no platforms.
    if (facts.platforms.length === 0 && !error) return { kind: 'failed', code: 'unavailable' };
    return this.#known(digest, old, await this.#before(request, old, remembered), facts);
  }

  /** Pods run what the tag names, or their runtime reports no digest. */
  #withoutPulled(facts: ImageFacts, digest: string, remembered: ImageFacts | undefined): CheckResult {
    const { known, tag } = this.#options;
    const none: CheckResult = { kind: 'known', digest, change: undefined, pulled: [] };
    if (this.#running.size > 0) return none;
    const isOlder = ({ pod }: TagUse): boolean => pod.createdAt < (known?.since ?? 0);
    if (known?.digest === digest && tag.uses.some(isOlder)) return { ...none, change: known };
    const wasOther = remembered?.digest !== undefined && remembered.digest !== digest;
    if (!wasOther || remembered.platforms.length === 0) return none;
    const before = { platforms: remembered.platforms, isComplete: true };
    return this.#known(digest, [remembered.digest], before, facts);
  }

  #known(
    digest: string,
    pulled: readonly string[],
    { platforms: before, isComplete }: { readonly platforms: readonly FullPlatform[]; isComplete: boolean },
    now: ImageFacts,
  ): CheckResult {
    const groups = [...(this.#options.leader.nodeClasses() ?? noNodes).values()].flat();
    const classes = groups.map((group) => group.class);
    return { kind: 'known', digest, change: changeOf({ before, isComplete, now, classes }), pulled };
  }

  /** The platforms of digests. A registry may not have one any more: then those of the nodes that run it. */
  async #before(request: ImageRequest, digests: readonly string[], remembered: ImageFacts | undefined) {
    const { nodes } = this.#options.leader.caches;
    const platforms: FullPlatform[] = [];
    let isComplete = true;
    for (const digest of digests) {
      const isRemembered = remembered?.digest === digest && remembered.platforms.length > 0;
      const found = isRemembered ? remembered : await this.#factsOf(request, digest);
      isComplete &&= found !== undefined;
      const on = (this.#running.get(digest) ?? []).flatMap(({ node }) => nodes.get('', node) ?? []);
      platforms.push(...(found?.platforms ?? on.map(platformOfNode)));
    }
    return { platforms, isComplete };
  }

  async #factsOf(request: ImageRequest, digest: string): Promise<ImageFacts | undefined> {
    const image = `${this.#options.tag.repository}@${digest}`;
    const byDigest = { ...ofAnyAge(request), image, reference: parseReference(image) };
    const facts = await this.#options.leader.cache.get(byDigest, { signal: this.#signal });
    return facts.error || facts.platforms.length === 0 ? undefined : facts;
  }
}

function isPulled({ uses }: RunningTag): boolean {
  return uses.some(({ pod, image }) => pulledReferences(pod, image).length > 0);
}

function platformOfNode({ os = defaultOs, architecture = '' }: CachedNode): FullPlatform {
  return { os, architecture };
}
