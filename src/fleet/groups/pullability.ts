/**
 * Pullability: which credential groups can pull the images of a repository, remembered from the answers of
 * their agents.
 *
 * A registry grants access to repositories, so one image stands for all of its repository. Results are kept
 * in the credential scope that they depend on. Facts show that a group can pull, `unauthorized` and
 * `forbidden` that it may not, `unavailable` that it cannot reach the registry. Anything else shows neither:
 * an image that does not exist, older facts while the registry fails, an override, a timeout.
 *
 * Results expire, and are looked up again before that. Refusals expire sooner than grants, since they keep
 * pods away from nodes, and unreachable registries soonest: networks recover by themselves.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import type { ImageFacts, ImageRequest } from '../../images/facts/facts.ts';
import { scopedKey, scopeOf, withAccount } from '../../images/memory/scope.ts';
import type { AgentAddress } from '../discovery/discovery.ts';
import { unknownGroup, type Groups } from './groups.ts';

/** `unknown`: the answer of a group shows neither. */
export const pullResults = ['able', 'refused', 'unreachable', 'unknown'] as const;
export type PullResult = (typeof pullResults)[number];

/** The groups by their results for one repository; groups are named by their fingerprints. */
export interface GroupResults {
  readonly able: readonly string[];
  readonly unable: readonly string[];
  /** Groups without a result. */
  readonly missing: readonly string[];
  /** Groups to look up again; their results still count. */
  readonly due: readonly string[];
}

const minute = 60_000;
/** `dueMs`: until the next lookup. */
const times: Readonly<Record<PullResult, { readonly dueMs: number; readonly lifetimeMs: number }>> = {
  able: { dueMs: 10 * minute, lifetimeMs: 60 * minute },
  refused: { dueMs: 2 * minute, lifetimeMs: 10 * minute },
  unreachable: { dueMs: minute / 2, lifetimeMs: 2 * minute },
  unknown: { dueMs: minute, lifetimeMs: minute },
};

/** A few hundred bytes each; a cluster uses a few hundred repositories. */
const defaultMaxRepositories = 5000;
/** Groups come from node pools; a cluster with more has something wrong with its fingerprints. */
const maxGroups = 64;

interface Noted {
  readonly result: PullResult;
  /** The agent that answered; `undefined` for an unknown result. */
  readonly agent: AgentAddress | undefined;
  readonly at: number;
  readonly dueAt: number;
}

/** By fingerprint. */
type ByGroup = BoundedMap<string, Noted>;

export class Pullability {
  readonly #groups: Pick<Groups, 'groupOf' | 'members'>;
  readonly #clock: Clock;
  readonly #repositories: BoundedMap<string, ByGroup>;

  constructor(
    groups: Pick<Groups, 'groupOf' | 'members'>,
    clock: Clock,
    maxRepositories = defaultMaxRepositories,
  ) {
    this.#groups = groups;
    this.#clock = clock;
    this.#repositories = new BoundedMap(maxRepositories);
  }

  /** Repositories with results, each once for each credential scope. */
  get size(): number {
    return this.#repositories.size;
  }

  /** Notes the answer of an agent. */
  note(request: ImageRequest, agent: AgentAddress, facts: ImageFacts): void {
    const result = pullResultOf(facts);
    const group = this.#groups.groupOf(agent);
    if (result === undefined || group === unknownGroup) return;
    const at = this.#clock.monotonic();
    const key = facts.credentialSource === 'service-account' ? accountKeyOf(request) : keyOf(request);
    this.#put(key, group, { result, agent, at, dueAt: at + times[result].dueMs });
  }

  /** Notes that the answer of a group shows neither; an earlier result keeps counting. */
  noteUnknown(request: ImageRequest, group: string): void {
    const at = this.#clock.monotonic();
    const dueAt = at + times.unknown.dueMs;
    for (const key of [accountKeyOf(request), keyOf(request)]) {
      const known = this.#valid(this.#repositories.peek(key), group);
      if (known) return this.#put(key, group, { ...known, dueAt });
    }
    this.#put(keyOf(request), group, { result: 'unknown', agent: undefined, at, dueAt });
  }

  recall(request: ImageRequest): GroupResults {
    const [ofAccount, ofAll] = [accountKeyOf(request), keyOf(request)].map((key) =>
      this.#repositories.get(key),
    );
    const able: string[] = [];
    const unable: string[] = [];
    const missing: string[] = [];
    const due: string[] = [];
    for (const group of this.#groups.members().keys()) {
      const noted = this.#valid(ofAccount, group) ?? this.#valid(ofAll, group);
      if (noted === undefined) {
        missing.push(group);
        continue;
      }
      if (noted.result === 'able') able.push(group);
      else if (noted.result !== 'unknown') unable.push(group);
      if (this.#clock.monotonic() >= noted.dueAt) due.push(group);
    }
    return { able, unable, missing, due };
  }

  /** A result that has not expired, from an agent that still belongs to the group. */
  #valid(byGroup: ByGroup | undefined, group: string): Noted | undefined {
    const noted = byGroup?.peek(group);
    if (noted === undefined) return undefined;
    if (this.#clock.monotonic() - noted.at >= times[noted.result].lifetimeMs) return undefined;
    const groupNow = noted.agent && this.#groups.groupOf(noted.agent);
    return groupNow === undefined || groupNow === unknownGroup || groupNow === group ? noted : undefined;
  }

  #put(key: string, group: string, noted: Noted): void {
    const byGroup: ByGroup = this.#repositories.get(key) ?? new BoundedMap(maxGroups);
    byGroup.set(group, noted);
    this.#repositories.set(key, byGroup);
  }
}

/** What an agent's answer shows of its group; `undefined`: neither. */
export function pullResultOf(facts: ImageFacts): Exclude<PullResult, 'unknown'> | undefined {
  // An override needs no registry, and older facts stand in for a registry that fails or refuses.
  if (facts.source === 'override' || facts.stale) return undefined;
  const code = facts.error?.code;
  if (code === undefined || code === 'not-an-image') return 'able';
  if (code === 'unauthorized' || code === 'forbidden') return 'refused';
  return code === 'unavailable' ? 'unreachable' : undefined;
}

/** Key of a repository for pull credentials and a service account. */
function accountKeyOf({ reference, pullCredentials, serviceAccount }: ImageRequest): string {
  return scopedKey(reference.repository, withAccount(scopeOf(pullCredentials), serviceAccount));
}

/** Key of a repository for pull credentials; it reveals nothing of them. */
export function keyOf({ reference, pullCredentials }: ImageRequest): string {
  return scopedKey(reference.repository, scopeOf(pullCredentials));
}
