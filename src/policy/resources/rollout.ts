/**
 * `ArchitectureRollout`: moves the pods of workloads to an architecture step by step. The controller writes
 * into `status.newPods` what happens to new pods; the webhook reads only that, the selection and the
 * architecture.
 */
import type { KubeObject, OwnerReference } from '../../kube/api/objects.ts';
import { namespacedPath } from '../../kube/api/paths.ts';
import { timeOf } from '../../kube/api/fields.ts';
import { byName, isRecord } from '../../names/values.ts';
import { Fields, isIntegerWithin } from './fields.ts';
import { selects, type Selector } from '../effective/label-selector.ts';
import { newPodsValues, type NewPods } from '../effective/policy.ts';
import { resourceApiVersion } from './placement.ts';

export const rolloutKind = 'ArchitectureRollout';
export const rolloutsPath = namespacedPath(resourceApiVersion, 'architecturerollouts');

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
  const metadata = object.metadata ?? {};
  const fields = new Fields(object, problems);
  const spec = fields.section('spec');
  const unhealthy = spec.section('unhealthy');
  const rollout: Rollout = {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    createdAt: timeOf(metadata.creationTimestamp),
    architecture: requiredArchitecture(spec),
    selector: spec.selector('selector') ?? [],
    names: namesOf(spec),
    newPods: newPodsOf(fields),
    steps: stepsOf(spec),
    pauseMs: spec.duration('pause') ?? defaults.pauseMs,
    unhealthy: {
      restarts: unhealthy.integer('restarts', 1, 1000) ?? defaults.restarts,
      readyWithinMs: unhealthy.duration('readyWithin') ?? defaults.readyWithinMs,
      timesSlower: unhealthy.integer('timesSlower', 2, 1000) ?? defaults.timesSlower,
    },
    tolerance: percentOf(spec, 'tolerance', spec.raw('tolerance') ?? defaults.tolerance),
    retryAfterMs: spec.duration('retryAfter'),
    rebalance: spec.boolean('rebalance') ?? false,
    paused: spec.boolean('paused') ?? false,
    aborted: spec.boolean('aborted') ?? false,
    resumedAt: spec.time('resumedAt'),
  };
  return problems.length > 0 ? { problems } : { rollout, problems: [] };
}

function requiredArchitecture(spec: Fields): string {
  const value = spec.raw('architecture');
  return spec.isArchitecture(value, 'architecture') ? value : '';
}

type Age = Pick<RolloutScope, 'createdAt' | 'name'>;

/** The order among rollouts that select the same pod: the oldest is first. */
export function byAge(a: Age, b: Age): number {
  return a.createdAt - b.createdAt || byName(a.name, b.name);
}

/** The workload of a pod, as a rollout counts and names it. */
export interface RolledWorkload {
  readonly kind: 'Deployment' | 'ReplicaSet' | 'StatefulSet';
  readonly name: string;
}

const hashLabel = 'pod-template-hash';

/**
 * The workload of a pod by its owner. A Deployment names its ReplicaSets by a hash, which is also a label of
 * the pod (kubernetes pkg/controller/deployment/sync.go).
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

/** How many of `count` pods a step wants: at least one, unless it wants less than half of a single one. */
export function wantedPods(step: Step, count: number): number {
  if ('pods' in step) return Math.min(step.pods, count);
  const wanted = Math.round((step.percent * count) / 100);
  return step.percent > 0 && count > 1 ? Math.max(1, wanted) : wanted;
}

function newPodsOf(fields: Fields): NewPods | undefined {
  const status = fields.raw('status');
  const value = isRecord(status) ? status['newPods'] : undefined;
  return newPodsValues.find((each) => each === value);
}

function namesOf(spec: Fields): ReadonlySet<string> | undefined {
  return spec.read('names', `a list of 1 to ${maxNames} names`, (value) => {
    const isList = Array.isArray(value) && value.length > 0 && value.length <= maxNames;
    return isList && value.every((name): name is string => typeof name === 'string')
      ? new Set(value)
      : undefined;
  });
}

function stepsOf(spec: Fields): readonly Step[] {
  const list = spec.raw('steps') ?? defaults.steps;
  if (!Array.isArray(list) || list.length === 0 || list.length > maxSteps)
    return spec.problem('steps', `must be a list of 1 to ${maxSteps}`) ?? [];
  return list.map((step: unknown, index): Step => {
    if (isIntegerWithin(step, 1, maxPods)) return { pods: step };
    return { percent: percentOf(spec, `steps[${index}]`, step, 1) };
  });
}

function percentOf(spec: Fields, key: string, value: unknown, least = 0): number {
  const digits = typeof value === 'string' ? /^([0-9]{1,3})%$/u.exec(value)?.[1] : undefined;
  const percent = Number(digits ?? Number.NaN);
  if (isIntegerWithin(percent, least, 100)) return percent;
  const orPods = least > 0 ? ', or a number of pods' : '';
  return spec.problem(key, `must be a percentage from ${least}% to 100%${orPods}`) ?? 0;
}
