/**
 * Notes on evictions, so no pod is evicted twice for one cause: one key per workload, set of images and
 * architecture, with a time. Older pods of the workload may be evicted too. Younger ones are successors: one
 * on the wrong node again stays, because evictions do not help (no webhook, or an unknown constraint).
 *
 * The time is written before the first eviction, and removed if that one is refused (PodDisruptionBudget). If
 * a person removes a key, or the ConfigMap, the next leader evicts pods of the workload again.
 */
import { createHash } from 'node:crypto';
import {
  ConfigMapNotes,
  type ConfigMapOptions,
  type NotesChange,
  type NotesData,
} from '../config-map-notes.ts';

export interface Cause {
  /** UID of the workload. */
  readonly uid: string;
  readonly digests: readonly string[];
  /** Architecture of the node that cannot run its images. */
  readonly architecture: string;
}

/** 60 bytes each: well below the 1 MiB that an object may have. */
const maxCauses = 5000;
const keyLength = 32;
const keyForm = /^[0-9a-f]{32}$/u;

/** The notes are read once: only the leader writes them. */
export class Causes {
  readonly #notes: ConfigMapNotes;
  #known: ReadonlyMap<string, number> | undefined;

  constructor(options: ConfigMapOptions) {
    this.#notes = new ConfigMapNotes(options);
  }

  /** Since when pods are evicted for a cause; server time, milliseconds. @throws KubeError */
  async since(cause: Cause, signal: AbortSignal): Promise<number | undefined> {
    this.#known ??= timesIn(await this.#notes.read(signal));
    return this.#known.get(keyOf(cause));
  }

  /**
   * Notes that pods are evicted for a cause from now on. The oldest notes are removed if there are too many.
   * @throws KubeError
   */
  async add(cause: Cause, since: number, signal: AbortSignal): Promise<void> {
    await this.#change((known) => {
      const surplus = [...known]
        .sort(([, a], [, b]) => a - b)
        .slice(0, Math.max(0, known.size + 1 - maxCauses))
        .map(([key]) => [key, null] as const);
      return { ...Object.fromEntries(surplus), [keyOf(cause)]: new Date(since).toISOString() };
    }, signal);
  }

  /**
   * Removes the note of an eviction that certainly did not happen: pods created meanwhile are no successors.
   * @throws KubeError
   */
  async remove(cause: Cause, signal: AbortSignal): Promise<void> {
    await this.#change(() => ({ [keyOf(cause)]: null }), signal);
  }

  async #change(
    changeOf: (known: ReadonlyMap<string, number>) => NotesChange,
    signal: AbortSignal,
  ): Promise<void> {
    this.#known = await this.#notes.change((data) => {
      const change = changeOf(timesIn(data));
      const after = Object.entries({ ...data, ...change }).filter(([, value]) => value !== null);
      return { change, result: timesIn(Object.fromEntries(after) as NotesData) };
    }, signal);
  }
}

function timesIn(data: NotesData): ReadonlyMap<string, number> {
  const times = Object.entries(data).map(([key, value]) => [key, Date.parse(value)] as const);
  return new Map(times.filter(([key, time]) => keyForm.test(key) && !Number.isNaN(time)));
}

function keyOf({ uid, digests, architecture }: Cause): string {
  const text = JSON.stringify([uid, [...digests].sort(), architecture]);
  return createHash('sha256').update(text).digest('hex').slice(0, keyLength);
}
