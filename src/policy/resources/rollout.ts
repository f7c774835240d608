/**
 * `ArchitectureRollout`: moves the pods of workloads to an architecture step by step. The controller follows it and writes into
 * `status.newPods` what happens to new pods; the webhook reads only that, the selection and the architecture.
 */
import type { KubeObject, OwnerReference } from '../../kube/api/objects.ts';
import { namespacedPath } from '../../kube/api/paths.ts';
import { isRecord } from '../../names/architecture.ts';
import { parseDuration } from '../../names/duration.ts';
import { isArchitecture, isIntegerWithin, isUnset, section, type Fields } from './fields.ts';
import { readSelector, selects, type Selector } from '../effective/label-selector.ts';
import { newPodsValues, type NewPods } from '../effective/policy.ts';
import { resourceVersion } from './placement.ts';

export const rolloutKind = 'ArchitectureRollout';
export const rolloutsPath = namespacedPath(resourceVersion, 'architecturerollouts');

/** A part of the pods of a workload. */
export type Step = { readonly percent: number } | { readonly pods: number };

export interface Unhealthy {
  /** A pod with so many restarts. */
  readonly restarts: number;
  /** A pod that is not ready after this time, milliseconds. */
  readonly readyWithinMs: number;
  /** A pod that takes so many times as long to become ready as the others. */
  readonly timesSlower: number;
}

/** What the webhook needs. */
export interface RolloutScope {
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly architecture: string;
  /** Selects pods by their labels. Empty: all. */
  readonly selector: Selector;
  /** Names of Deployments, StatefulSets and ReplicaSets; `undefined`: all. */
  readonly names: ReadonlySet<string> | undefined;
  readonly newPods: NewPods | undefined;
}

export interface Rollout extends RolloutScope {
  /** Not empty. */
  readonly steps: readonly Step[];
  readonly pauseMs: number;
  readonly unhealthy: Unhealthy;
  /** Percentage points by which more pods may be unhealthy than on the other architectures. */
  readonly tolerance: number;
  /** After a rollback; `undefined`: a person resumes. */
  readonly retryAfterMs: number | undefined;
  readonly rebalance: boolean;
  readonly paused: boolean;
  readonly aborted: boolean;
  /** When a person resumed it last; milliseconds since 1970. */
  readonly resumedAt: number | undefined;
}

export type RolloutReading =
  | { readonly rollout: Rollout; readonly problems: readonly [] }
  | { readonly rollout?: undefined; readonly problems: readonly string[] };

/** The limits, also in the definition. */
const maxSteps = 20;
const maxNames = 64;
const maxPods = 100_000;
const defaults = {
  steps: ['10%', '50%', '100%'],
  pauseMs: 10 * 60_000,
  restarts: 2,
  readyWithinMs: 5 * 60_000,
  timesSlower: 3,
  tolerance: '10%',
};

/** Never throws. An object with an invalid value is ignored as a whole. */
export function readRollout(object: KubeObject): RolloutReading {
  const problems: string[] = [];
  const { name = '', namespace = '', creationTimestamp = '' } = object.metadata ?? {};
  const fields: Fields = { ...object };
  const spec = section(fields, 'spec', problems);
  const reader = new Reader(spec, problems);
  const unhealthy = new Reader(section(spec, 'unhealthy', problems), problems, 'unhealthy.');
  const { selector, architecture } = spec;
  const rollout: Rollout = {
    namespace,
    name,
    createdAt: Date.parse(creationTimestamp) || 0,
    architecture: isArchitecture(architecture, 'spec.architecture', problems) ? architecture : '',
    selector: isUnset(selector) ? [] : readSelector(selector, 'spec.selector', problems),
    names: namesOf(spec['names'], problems),
    newPods: newPodsOf(fields),
    steps: stepsOf(spec['steps'], problems),
    pauseMs: reader.duration('pause') ?? defaults.pauseMs,
    unhealthy: {
      restarts: unhealthy.integer('restarts', 1, 1000) ?? defaults.restarts,
      readyWithinMs: unhealthy.duration('readyWithin') ?? defaults.readyWithinMs,
      timesSlower: unhealthy.integer('timesSlower', 2, 1000) ?? defaults.timesSlower,
    },
    tolerance: percentOf(spec['tolerance'] ?? defaults.tolerance, 'spec.tolerance', problems),
    retryAfterMs: reader.duration('retryAfter'),
    rebalance: reader.boolean('rebalance'),
    paused: reader.boolean('paused'),
    aborted: reader.boolean('aborted'),
    resumedAt: reader.time('resumedAt'),
  };
  return problems.length > 0 ? { problems } : { rollout, problems: [] };
}

type Age = Pick<RolloutScope, 'createdAt' | 'name'>;

/** The order among rollouts that select the same pod: the oldest is first. */
export function byAge(a: Age, b: Age): number {
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}

/** The workload of a pod, as a rollout counts and names it. */
export interface RolledWorkload {
  readonly kind: 'Deployment' | 'ReplicaSet' | 'StatefulSet';
  readonly name: string;
}

const hashLabel = 'pod-template-hash';

/**
 * The workload of a pod by what the pod itself says: a Deployment names its ReplicaSets by a hash, which is also a label of the pod
 * (kubernetes pkg/controller/deployment/sync.go).
 * @returns `undefined`: of a kind that no rollout moves
 */
export function rolledWorkloadOf(
  owner: OwnerReference | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): RolledWorkload | undefined {
  if (owner?.apiVersion !== 'apps/v1') return undefined;
  const { kind, name } = owner;
  // Only `explain` names a Deployment as the owner of its pods, which do not exist yet.
  if (kind === 'StatefulSet' || kind === 'Deployment') return { kind, name };
  if (kind !== 'ReplicaSet') return undefined;
  const end = `-${labels?.[hashLabel] ?? ''}`;
  return end.length > 1 && name.endsWith(end)
    ? { kind: 'Deployment', name: name.slice(0, -end.length) }
    : { kind, name };
}

/** Whether a rollout is for a pod. */
export function isInRollout(
  { selector, names }: Pick<RolloutScope, 'selector' | 'names'>,
  owner: OwnerReference | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  const workload = rolledWorkloadOf(owner, labels);
  return workload !== undefined && (names?.has(workload.name) ?? true) && selects(selector, labels);
}

/** `10%` or `3`. */
export function formatStep(step: Step): string {
  return 'percent' in step ? `${step.percent}%` : `${step.pods}`;
}

/** How many of `count` pods a step wants. Each step has one pod at least, unless there is only one and it wants less than half. */
export function wantedPods(step: Step, count: number): number {
  if ('pods' in step) return Math.min(step.pods, count);
  const wanted = Math.round((step.percent * count) / 100);
  return step.percent > 0 && count > 1 ? Math.max(1, wanted) : wanted;
}

/** Reads the optional fields of a section. */
class Reader {
  readonly #fields: Fields;
  readonly #problems: string[];
  readonly #prefix: string;

  constructor(fields: Fields, problems: string[], prefix = '') {
    this.#fields = fields;
    this.#problems = problems;
    this.#prefix = prefix;
  }

  duration(key: string): number | undefined {
    return this.#read(key, 'a duration such as 10m', (value) =>
      typeof value === 'string' ? parseDuration(value) : undefined,
    );
  }

  time(key: string): number | undefined {
    return this.#read(key, 'a time in RFC 3339', (value) => {
      const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
      return Number.isNaN(time) ? undefined : time;
    });
  }

  integer(key: string, least: number, most: number): number | undefined {
    return this.#read(key, `a whole number from ${least} to ${most}`, (value) =>
      isIntegerWithin(value, least, most) ? value : undefined,
    );
  }

  boolean(key: string): boolean {
    const found = this.#read(key, 'true or false', (value) =>
      typeof value === 'boolean' ? value : undefined,
    );
    return found ?? false;
  }

  #read<T>(key: string, form: string, parse: (value: unknown) => T | undefined): T | undefined {
    const value = this.#fields[key];
    if (isUnset(value)) return undefined;
    const found = parse(value);
    if (found === undefined) this.#problems.push(`spec.${this.#prefix}${key} must be ${form}`);
    return found;
  }
}

function newPodsOf({ status }: Fields): NewPods | undefined {
  const value = isRecord(status) ? status['newPods'] : undefined;
  return newPodsValues.find((each) => each === value);
}

function namesOf(value: unknown, problems: string[]): ReadonlySet<string> | undefined {
  if (isUnset(value)) return undefined;
  const isList = Array.isArray(value) && value.length > 0 && value.length <= maxNames;
  if (isList && value.every((name): name is string => typeof name === 'string')) return new Set(value);
  problems.push(`spec.names must be a list of 1 to ${maxNames} names`);
  return undefined;
}

function stepsOf(value: unknown, problems: string[]): readonly Step[] {
  const list: unknown = isUnset(value) ? defaults.steps : value;
  if (!Array.isArray(list) || list.length === 0 || list.length > maxSteps) {
    problems.push(`spec.steps must be a list of 1 to ${maxSteps}`);
    return [];
  }
  return list.map((step: unknown, index): Step => {
    if (isIntegerWithin(step, 1, maxPods)) return { pods: step };
    return { percent: percentOf(step, `spec.steps[${index}]`, problems, 1) };
  });
}

function percentOf(value: unknown, path: string, problems: string[], least = 0): number {
  const digits = typeof value === 'string' ? /^([0-9]{1,3})%$/u.exec(value)?.[1] : undefined;
  const percent = Number(digits ?? Number.NaN);
  if (isIntegerWithin(percent, least, 100)) return percent;
  problems.push(
    `${path} must be a percentage from ${least}% to 100%${least > 0 ? ', or a number of pods' : ''}`,
  );
  return 0;
}
