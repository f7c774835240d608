/**
 * Checks one tag, with the credentials of a pod that runs it. The agent that owns its repository confirms the
 * digest by one HEAD. The platforms of running digests are looked up only if the tag names another digest.
 */
import { limited, TimeLimitReached } from '../../../async/wait.ts';
import { CredentialError, serviceAccountOf } from '../../../credentials/credential.ts';
import { type FactsErrorCode, type ImageFacts, ofAnyAge } from '../../../images/facts/facts.ts';
import { defaultOs, formatPlatform, type FullPlatform } from '../../../names/platform.ts';
import type { NodeClass } from '../../../nodes/node-class.ts';
import { noNodes } from '../../../nodes/node-classes.ts';
import { selectPlatform } from '../../../nodes/selection.ts';
import { parseReference } from '../../../images/references/reference.ts';
import type { DriftedTag } from '../../../images/sources/drifted-tags.ts';
import { formOf } from '../../../placement/rules/images/fit.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { pulledReferences } from '../../pods/pulled-images.ts';
import { runningDigests, type RunningTag, type TagUse } from './tags.ts';

type PlatformChange = Pick<DriftedTag, 'lost' | 'gained'>;

export interface CheckResult {
  /** `skipped`: there is nothing to check: an override decides, or no pod has pulled it. A code: the check failed. */
  readonly result: 'same' | 'changed' | 'skipped' | FactsErrorCode;
  /** What the tag names now, the difference from running pods, and their digests. Absent: known results stay. */
  readonly known?: {
    readonly digest: string;
    readonly change: PlatformChange | undefined;
    readonly pulled: readonly string[];
  };
}

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
  const { signal, clock, log } = options.leader;
  try {
    return await limited(checkMs, signal, (within) => check(options, within), clock.sleep);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TimeLimitReached) return { result: 'timeout' };
    if (error instanceof CredentialError) return { result: 'unauthorized' };
    // A tag that cannot be checked must not stop the others.
    log.error({ err: error, image: options.tag.image }, 'a check for drift failed unexpectedly');
    return { result: 'unavailable' };
  }
}

async function check({ leader, tag, use, known }: CheckOptions, signal: AbortSignal): Promise<CheckResult> {
  const { cache, configuration, caches, nodeClasses } = leader;
  const { namespace, pullSecrets: names, serviceAccountName } = use.pod;
  const serviceAccount = serviceAccountOf(namespace, serviceAccountName);
  const anonymous = leader.requestOf(use.image, 'IfNotPresent', { namespace, serviceAccount });
  const source = await leader.pullSecrets.source(namespace, { names }, signal);
  const pullCredentials = await source.lookup(anonymous.reference.repository);
  const request = { ...anonymous, pullCredentials };
  const remembered = cache.peek(ofAnyAge(request));
  const isPulled = tag.uses.some(({ pod, image }) => pulledReferences(pod, image).length > 0);
  if (remembered?.source === 'override' || !isPulled) return { result: 'skipped' };
  // The check before is older than that, so the agent confirms what it remembers by one HEAD.
  const maxAgeMs = configuration().driftInterval / 2;
  const facts = await cache.get({ ...request, maxAgeMs }, { signal });
  const { digest, error, stale } = facts;
  if (digest === undefined || stale || (error && error.code !== 'not-an-image'))
    return { result: error?.code ?? 'unavailable' };

  const running = runningDigests(tag, caches.nodes);
  const result = (change: PlatformChange | undefined, pulled: readonly string[]): CheckResult => {
    return { result: pulled.length === 0 ? 'same' : 'changed', known: { digest, change, pulled } };
  };
  const compared = (before: Pick<Comparison, 'before' | 'isComplete'>) => {
    const classes = [...(nodeClasses() ?? noNodes).values()].flat().map((group) => group.class);
    return changeOf({ ...before, now: facts, classes });
  };
  const pulled = [...running.keys()].filter((each) => each !== digest);
  if (pulled.length > 0) {
    if (known?.digest === digest) return result(known, pulled);
    // Facts of a tag that constrains nothing have no platforms.
    if (facts.platforms.length === 0 && !error) return { result: 'unavailable' };
    return result(compared(await platformsOf(pulled.slice(0, maxCompared))), pulled);
  }
  if (running.size > 0) return result(undefined, []);
  // No runtime reports the digest of the tag: facts from before are compared.
  const isOlder = ({ pod }: TagUse): boolean => pod.createdAt < (known?.since ?? 0);
  if (known?.digest === digest && tag.uses.some(isOlder)) return result(known, []);
  const { digest: old, platforms: before = [] } = remembered ?? {};
  if (old === undefined || old === digest || before.length === 0) return result(undefined, []);
  return result(compared({ before, isComplete: true }), [old]);

  /** The platforms of digests. A registry may not have one any more: then those of the nodes that run it. */
  async function platformsOf(digests: readonly string[]) {
    const before: FullPlatform[] = [];
    let isComplete = true;
    for (const each of digests) {
      const isRemembered = remembered?.digest === each && remembered.platforms.length > 0;
      const image = `${tag.repository}@${each}`;
      const byDigest = { ...ofAnyAge(request), image, reference: parseReference(image) };
      const found = isRemembered ? remembered : await cache.get(byDigest, { signal });
      const isFound = !found.error && found.platforms.length > 0;
      isComplete &&= isFound;
      const on = (running.get(each) ?? []).flatMap(({ node }) => caches.nodes.get('', node) ?? []);
      const ofNodes = on.map(({ os = defaultOs, architecture = '' }) => ({ os, architecture }));
      before.push(...(isFound ? found.platforms : ofNodes));
    }
    return { before, isComplete };
  }
}

export interface Comparison {
  /** Platforms of the digests that pods run. */
  readonly before: readonly FullPlatform[];
  /** Otherwise `before` has the platforms of the pods' nodes, and gains are unknown. */
  readonly isComplete: boolean;
  /** What the tag names now. */
  readonly now: Pick<ImageFacts, 'platforms' | 'mediaType'>;
  /** Node classes of the cluster. */
  readonly classes: readonly NodeClass[];
}

/**
 * The platforms (with variants) that a tag lost or gained, compared with those of the digests that pods run.
 * `amd64` replaced by `amd64/v3` is both lost and gained: it needs another CPU level. A lost platform matters
 * if a node could run it, and may be unable to run what is left.
 * @returns `undefined`: nothing that matters has changed
 */
export function changeOf({ before, isComplete, now, classes }: Comparison): PlatformChange | undefined {
  const old = new Map(before.map((each) => [formatPlatform(each), each]));
  const present = new Set(now.platforms.map(formatPlatform));
  const unserved = classes.filter((each) => !runs(now, each));
  const mayRun = (platform: FullPlatform, each: NodeClass): boolean =>
    selectPlatform([platform], each, 1, 'manifest').verdict !== 'refused';
  const lost = [...old].flatMap(([text, platform]) =>
    !present.has(text) && unserved.some((each) => mayRun(platform, each)) ? [text] : [],
  );
  const gained = isComplete ? [...present].filter((text) => !old.has(text)) : [];
  if (lost.length === 0 && gained.length === 0) return undefined;
  return { lost: lost.sort(), gained: gained.sort() };
}

function runs({ platforms, mediaType }: Comparison['now'], node: NodeClass): boolean {
  return platforms.length > 0 && selectPlatform(platforms, node, 1, formOf(mediaType)).verdict === 'runs';
}
