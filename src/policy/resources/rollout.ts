/**
 * `ArchitectureRollout`: moves the pods of workloads to an architecture step by step. The controller writes
 * into `status.newPods` what happens to new pods; the webhook reads only that, the selection and the
 * architecture.
 */
import * as v from 'valibot';
import type { KubeObject, OwnerReference } from '../../kube/api/objects.ts';
import { namespacedPath } from '../../kube/api/paths.ts';
import { byName } from '../../names/values.ts';
import { newPodsValues } from '../effective/policy.ts';
import { resourceApiVersion } from './placement.ts';
import {
  architecture,
  duration,
  identityOf,
  integer,
  labelSelector,
  listOf,
  object,
  optional,
  readResource,
  section,
  selects,
  time,
} from './schemas.ts';

export const rolloutKind = 'ArchitectureRollout';
export const rolloutsPath = namespacedPath(resourceApiVersion, 'architecturerollouts');

/** The limits, also in the definition. */
const maxSteps = 20;
const maxNames = 64;
const maxPods = 100_000;

const percent = (least: number) =>
  v.pipe(
    v.string(),
    v.regex(/^[0-9]{1,3}%$/u, 'must be a percentage'),
    v.transform((text) => ({ percent: Number(text.slice(0, -1)) })),
    v.object({ percent: integer(least, 100) }),
  );

/** A part of the pods of a workload. */
export type Step = { readonly percent: number } | { readonly pods: number };

const step = v.pipe(
  v.union([integer(1, maxPods), percent(1)], 'must be a percentage from 1% to 100%, or a number of pods'),
  v.transform((part): Step => (typeof part === 'number' ? { pods: part } : part)),
);

const schema = object({
  spec: object({
    architecture,
    /** Selects pods by their labels. Empty: all. */
    selector: v.nullish(labelSelector, {}),
    /** Names of Deployments, StatefulSets and ReplicaSets; `undefined`: all. */
    names: optional(
      v.pipe(
        listOf(v.string(), 1, maxNames),
        v.transform((names): ReadonlySet<string> => new Set(names)),
      ),
    ),
    steps: v.nullish(listOf(step, 1, maxSteps), ['10%', '50%', '100%']),
    pause: v.nullish(duration, '10m'),
    unhealthy: section({
      /** A pod with so many restarts. */
      restarts: v.nullish(integer(1, 1000), 2),
      /** A pod that is not ready after this time. */
      readyWithin: v.nullish(duration, '5m'),
      /** A pod that takes so many times as long to become ready as the others. */
      timesSlower: v.nullish(integer(2, 1000), 3),
    }),
    /** Percentage points by which more pods may be unhealthy than on the other architectures. */
    tolerance: v.nullish(percent(0), '10%'),
    /** The pause after a rollback; `undefined`: a person resumes. */
    retryAfter: optional(duration),
    rebalance: v.nullish(v.boolean(), false),
    paused: v.nullish(v.boolean(), false),
    aborted: v.nullish(v.boolean(), false),
    /** When a person resumed it last. */
    resumedAt: optional(time),
  }),
  /** Written by the controller. */
  status: v.fallback(section({ newPods: optional(v.picklist(newPodsValues)) }), { newPods: undefined }),
});

export type Rollout = NonNullable<ReturnType<typeof readRollout>['value']>;
/** What the webhook needs. */
export type RolloutScope = Pick<
  Rollout,
  'namespace' | 'name' | 'createdAt' | 'architecture' | 'selector' | 'names' | 'newPods'
>;

/** Never throws. An object with an invalid value is ignored as a whole. Durations and times: milliseconds. */
export function readRollout(resource: KubeObject) {
  return readResource(schema, resource, ({ spec, status: { newPods } }) => {
    const { pause: pauseMs, retryAfter: retryAfterMs, ...rest } = spec;
    const tolerance = spec.tolerance.percent;
    return { ...identityOf(resource), ...rest, newPods, pauseMs, retryAfterMs, tolerance };
  });
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
