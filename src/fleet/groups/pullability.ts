/**
 * Pullability: which credential groups can pull the images of a repository, remembered from what their agents answered.
 *
 * A registry grants access to repositories, so one image stands for all of its repository. What pull credentials open is
 * kept under their identity, and what depends on a service account under its name. Facts say that a group can pull,
 * `unauthorized` and `forbidden` that it may not, `unavailable` that it does not get there. Anything else says neither: an
 * image that does not exist, older facts while the registry fails, an override, a wait that was too long.
 *
 * What is remembered counts for a while and is asked for again before that ends. Refusals are forgotten sooner than
 * grants, since they keep pods away from nodes, and what did not get there soonest: networks recover by themselves.
 */
import type { ImageFacts, ImageRequest } from '../../images/facts/facts.ts';
import { scopedKey, scopeOf, withAccount } from '../../images/memory/scope.ts';
import { createLru, type Linked } from '../../images/memory/lru.ts';
import type { Clock } from '../../async/clock.ts';
import type { AgentAddress } from '../fleet.ts';
import { unknownGroup, type Groups } from './groups.ts';

/** `silent`: a group was asked, and its answer told neither. */
export const verdicts = ['able', 'refused', 'unreachable', 'silent'] as const;
export type Verdict = (typeof verdicts)[number];

/** What is remembered of one repository; groups are named by their fingerprints. */
export interface Remembered {
  readonly able: readonly string[];
  readonly unable: readonly string[];
  /** Groups of which nothing is known. */
  readonly missing: readonly string[];
  /** Groups of which it is time to ask again; what is known of them still counts. */
  readonly due: readonly string[];
}

export interface Pullability {
  /** Takes what an agent answered. */
  note(question: ImageRequest, agent: AgentAddress, facts: ImageFacts): void;
  /** Takes that a group was asked and told neither; what is known of it keeps counting. */
  silent(question: ImageRequest, group: string): void;
  recall(question: ImageRequest): Remembered;
  /** Repositories that something is remembered of, each once for each identity of pull credentials. */
  readonly size: number;
}

interface Times {
  /** Until it is asked for again, milliseconds. */
  readonly dueMs: number;
  /** Until it counts no more. */
  readonly lifetimeMs: number;
}

const minute = 60_000;
const times: Readonly<Record<Verdict, Times>> = {
  able: { dueMs: 10 * minute, lifetimeMs: 60 * minute },
  refused: { dueMs: 2 * minute, lifetimeMs: 10 * minute },
  unreachable: { dueMs: minute / 2, lifetimeMs: 2 * minute },
  silent: { dueMs: minute, lifetimeMs: minute },
};

/** Some hundred bytes each; a cluster uses some hundred repositories. */
const defaultMaxRepositories = 5000;
/** Groups come from pools of nodes; a cluster with more has something wrong with its fingerprints. */
const maxGroups = 64;

interface Noted {
  readonly verdict: Verdict;
  /** Whose answer it was; `undefined` for silence. */
  readonly agent: AgentAddress | undefined;
  readonly at: number;
  readonly askAgainAt: number;
}

interface Entry extends Linked<Entry> {
  readonly groups: Map<string, Noted>;
}

export interface PullabilityOptions {
  readonly groups: Pick<Groups, 'groupOf' | 'members'>;
  readonly clock: Clock;
  readonly maxRepositories?: number;
}

/** Makes an empty memory. */
export function createPullability(options: PullabilityOptions): Pullability {
  const { groups, clock, maxRepositories = defaultMaxRepositories } = options;
  const entries = createLru<Entry>();

  function entryFor(key: string): Entry {
    const present = entries.get(key);
    if (present) {
      entries.touch(present);
      return present;
    }
    const made: Entry = {
      key,
      bytes: 1,
      listed: false,
      newer: undefined,
      older: undefined,
      groups: new Map(),
    };
    entries.put(made);
    const oldest = entries.size > maxRepositories ? entries.oldest() : undefined;
    if (oldest) entries.remove(oldest);
    return made;
  }

  function put(key: string, group: string, noted: Noted): void {
    const { groups: known } = entryFor(key);
    // What is put in last stays longest; groups that are gone have no place otherwise to go.
    known.delete(group);
    known.set(group, noted);
    const first = known.size > maxGroups ? known.keys().next().value : undefined;
    if (first !== undefined) known.delete(first);
  }

  /** What counts now: not what is too old, and not the answer of an agent whose credentials have changed since. */
  function valid(noted: Noted | undefined, group: string, now: number): Noted | undefined {
    if (noted === undefined || now - noted.at >= times[noted.verdict].lifetimeMs) return undefined;
    const groupNow = noted.agent && groups.groupOf(noted.agent);
    return groupNow === undefined || groupNow === unknownGroup || groupNow === group ? noted : undefined;
  }

  return {
    note: (question, agent, facts) => {
      const verdict = verdictOf(facts);
      const group = groups.groupOf(agent);
      if (verdict === undefined || group === unknownGroup) return;
      const at = clock.monotonic();
      const key = facts.credentialSource === 'service-account' ? accountKeyOf(question) : keyOf(question);
      put(key, group, { verdict, agent, at, askAgainAt: at + times[verdict].dueMs });
    },
    silent: (question, group) => {
      const now = clock.monotonic();
      const askAgainAt = now + times.silent.dueMs;
      const keys = [accountKeyOf(question), keyOf(question)];
      const knownAt = (at: string): Noted | undefined =>
        valid(entries.get(at)?.groups.get(group), group, now);
      const key = keys.find((at) => knownAt(at) !== undefined) ?? keyOf(question);
      const known = knownAt(key);
      put(
        key,
        group,
        known ? { ...known, askAgainAt } : { verdict: 'silent', agent: undefined, at: now, askAgainAt },
      );
    },
    recall: (question) => {
      const found = [accountKeyOf(question), keyOf(question)]
        .map((key) => entries.get(key))
        .filter((entry) => entry !== undefined);
      for (const entry of found) entries.touch(entry);
      const now = clock.monotonic();
      const able: string[] = [];
      const unable: string[] = [];
      const missing: string[] = [];
      const due: string[] = [];
      for (const group of groups.members().keys()) {
        const noted = found.map((entry) => valid(entry.groups.get(group), group, now)).find(Boolean);
        if (noted === undefined) {
          missing.push(group);
          continue;
        }
        if (noted.verdict === 'able') able.push(group);
        else if (noted.verdict !== 'silent') unable.push(group);
        if (now >= noted.askAgainAt) due.push(group);
      }
      return { able, unable, missing, due };
    },
    get size() {
      return entries.size;
    },
  };
}

/** What an agent's answer tells of its group; `undefined`: neither. */
export function verdictOf(facts: ImageFacts): Exclude<Verdict, 'silent'> | undefined {
  // An override was never asked for, and older facts stand in for a registry that fails or refuses.
  if (facts.source === 'override' || facts.stale) return undefined;
  const code = facts.error?.code;
  if (code === undefined || code === 'not-an-image') return 'able';
  if (code === 'unauthorized' || code === 'forbidden') return 'refused';
  return code === 'unavailable' ? 'unreachable' : undefined;
}

/** The same for what depends on the pod's service account. */
function accountKeyOf({ reference, pullCredentials, serviceAccount }: ImageRequest): string {
  return scopedKey(reference.repository, withAccount(scopeOf(pullCredentials), serviceAccount));
}

/** Key of a repository for an identity of pull credentials, which reveals nothing of them. */
export function keyOf({ reference, pullCredentials }: ImageRequest): string {
  return scopedKey(reference.repository, scopeOf(pullCredentials));
}
