/**
 * Which credential groups can pull the images of a repository, remembered from the answers of their agents.
 *
 * A registry grants access to repositories, so one image stands for all of its repository, in the credential
 * scope of the request. Facts show that a group can pull, `unauthorized` and `forbidden` that it may not,
 * `unavailable` that it cannot reach the registry. Anything else shows neither: an image that does not exist,
 * older facts while the registry fails, an override, a timeout.
 *
 * Results expire, and are looked up again before that. Refusals expire sooner than grants, since they keep
 * pods away from nodes, and unreachable registries soonest: networks recover by themselves.
 */
import { setMaxListeners } from 'node:events';
import { LRUCache } from 'lru-cache';
import { FairSemaphore } from '../async/fair-semaphore.ts';
import { unlessAborted } from '../async/wait.ts';
import { scopedKey, scopeOf } from '../images/cache/scope.ts';
import type { ImageFacts, ImageRequest } from '../images/facts/facts.ts';
import { unknownGroup, type CredentialGroup } from './agents.ts';
import type { AgentAddress } from './discovery.ts';
import { Lookup, type LookupContext } from './lookup.ts';
import type { PullResult } from './metrics.ts';

const minute = 60_000;
/** `dueMs`: until it is looked up again. */
const times: Readonly<Record<PullResult, { readonly dueMs: number; readonly lifetimeMs: number }>> = {
  able: { dueMs: 10 * minute, lifetimeMs: 60 * minute },
  refused: { dueMs: 2 * minute, lifetimeMs: 10 * minute },
  unreachable: { dueMs: minute / 2, lifetimeMs: 2 * minute },
  unknown: { dueMs: minute, lifetimeMs: minute },
};
/** A few hundred bytes each; a cluster uses a few hundred repositories, and groups come from node pools. */
const maxKnown = 20_000;
/** Groups that are looked up at the same time; no namespace can use them up. */
const maxLookups = 1024;

interface Known {
  readonly result: PullResult;
  /** The agent that answered; empty for none. */
  readonly url: string;
  readonly dueAt: number;
  readonly expiresAt: number;
}

export class Pullability {
  readonly #context: LookupContext;
  readonly #known = new LRUCache<string, Known>({ maxSize: maxKnown, sizeCalculation: () => 1 });
  readonly #running = new Map<string, Promise<void>>();
  readonly #places = new FairSemaphore({ places: maxLookups });
  readonly #stopping = new AbortController();

  constructor(context: LookupContext) {
    this.#context = context;
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Repositories with results, each once for each credential scope. */
  get repositories(): number {
    return new Set([...this.#known.keys()].map((key) => key.slice(0, key.indexOf(separator)))).size;
  }

  /** Notes the answer of an agent. */
  note(request: ImageRequest, { url }: AgentAddress, facts: ImageFacts): void {
    const { agents, clock } = this.#context;
    const result = pullResultOf(facts);
    const key = keyOf(request, agents.groupOf(url));
    if (result) this.#known.set(key, knownFrom(clock.monotonic(), result, url));
  }

  /** What is known when `signal` aborts; with fewer than two groups, nothing. */
  async groups(
    request: ImageRequest,
    signal: AbortSignal,
  ): Promise<{ able: CredentialGroup[]; unable: CredentialGroup[] }> {
    const { agents, clock } = this.#context;
    const { groups } = agents.view;
    if (groups.length < 2) return { able: [], unable: [] };
    const known = (group: CredentialGroup) => this.#get(keyOf(request, group.fingerprint), group);
    const missing = groups.flatMap((group) => {
      const noted = known(group);
      if (noted && clock.monotonic() < noted.dueAt) return [];
      const checked = this.#check(request, group);
      return noted ? [] : [checked];
    });
    await unlessAborted(Promise.all(missing), signal).catch(() => undefined);
    const having = (...results: readonly PullResult[]) =>
      groups.filter((group) => results.includes(known(group)?.result ?? 'unknown'));
    return { able: having('able'), unable: having('refused', 'unreachable') };
  }

  close(): void {
    this.#stopping.abort();
  }

  /** Asks the owner of the repository in a group, which may answer from memory; at most once at a time. */
  #check(request: ImageRequest, group: CredentialGroup): Promise<void> {
    const key = keyOf(request, group.fingerprint);
    const running = this.#running.get(key);
    const leave = running ? undefined : this.#places.tryEnter(request.namespace ?? '');
    if (!leave) return running ?? Promise.resolve();
    const checking = this.#ask(key, request, group).finally(() => {
      this.#running.delete(key);
      leave();
    });
    this.#running.set(key, checking);
    return checking;
  }

  async #ask(key: string, request: ImageRequest, group: CredentialGroup): Promise<void> {
    const { agents, clock, meters } = this.#context;
    const { signal } = this.#stopping;
    const before = this.#get(key, group);
    const ranked = agents.byGroup(request.reference.repository).get(group.fingerprint) ?? [];
    const anyAge = { ...request, maxAgeMs: Number.POSITIVE_INFINITY };
    await new Lookup(this.#context, anyAge, signal).run([ranked]);
    if (signal.aborted) return;
    const after = this.#get(key, group);
    const isNoted = after !== undefined && after !== before;
    const unknown = knownFrom(clock.monotonic(), 'unknown');
    // An earlier result keeps counting.
    if (!isNoted) this.#known.set(key, before ? { ...before, dueAt: unknown.dueAt } : unknown);
    meters.surveyed(isNoted ? after.result : 'unknown');
  }

  /** A result that has not expired, from an agent that still belongs to the group. */
  #get(key: string, { fingerprint }: CredentialGroup): Known | undefined {
    const { agents, clock } = this.#context;
    const known = this.#known.get(key);
    if (known === undefined || known.expiresAt <= clock.monotonic()) return undefined;
    const now = agents.groupOf(known.url);
    return now === unknownGroup || now === fingerprint ? known : undefined;
  }
}

function knownFrom(now: number, result: PullResult, url = ''): Known {
  const { dueMs, lifetimeMs } = times[result];
  return { result, url, dueAt: now + dueMs, expiresAt: now + lifetimeMs };
}

/** Neither repositories nor scopes have line breaks. */
const separator = '\n';

/** It reveals nothing of the credentials. */
function keyOf(request: ImageRequest, group: string): string {
  return scopedKey(request.reference.repository, scopeOf(request)) + separator + group;
}

/** What an agent's answer shows of its group; `undefined`: neither. */
function pullResultOf({ source, stale, error }: ImageFacts): PullResult | undefined {
  // An override needs no registry, and older facts stand in for a registry that fails or refuses.
  if (source === 'override' || stale) return undefined;
  if (error === undefined || error.code === 'not-an-image') return 'able';
  if (error.code === 'unauthorized' || error.code === 'forbidden') return 'refused';
  return error.code === 'unavailable' ? 'unreachable' : undefined;
}
