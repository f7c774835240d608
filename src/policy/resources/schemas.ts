/**
 * Schemas of custom resources, with label selectors. Unknown fields are ignored, because a newer definition may
 * have them. `null` counts as absent: the API server removes it if a definition forbids it; older objects can
 * have one.
 */
import * as v from 'valibot';
import { timeOf, type KubeObject } from '../../kube/api/objects.ts';
import { readShape } from '../../http/json.ts';
import { parseDuration } from '../../names/quantity.ts';
import { messageOf } from '../../names/printable.ts';
import { isLabelKey, isLabelValue, meets } from '../../names/labels.ts';
import { isRecord, own } from '../../names/values.ts';
import { checkArchitecture } from '../value-kinds/architectures.ts';

/** An object with an invalid value in a known field is ignored as a whole; the first problem names it. */
export type Reading<T> =
  | { readonly value: T; readonly problems: readonly [] }
  | { readonly value?: undefined; readonly problems: readonly string[] };

/** Never throws. @param finish makes the value of what the schema reads */
export function readResource<const S extends v.GenericSchema, T>(
  schema: S,
  resource: KubeObject,
  finish: (read: v.InferOutput<S>) => T,
): Reading<T> {
  try {
    const read = readShape(schema, resource, (where, problem) => new Error(`${where} ${problem}`));
    return { value: finish(read), problems: [] };
  } catch (error) {
    return { problems: [messageOf(error)] };
  }
}

export function identityOf({ metadata }: KubeObject) {
  return {
    namespace: metadata?.namespace ?? '',
    name: metadata?.name ?? '',
    /** Milliseconds since 1970. */
    createdAt: timeOf(metadata?.creationTimestamp),
  };
}

export const optional = <S extends v.GenericSchema>(schema: S) => v.nullish(schema, () => undefined);

/** Valibot takes a list for an object. */
export const object = <E extends v.ObjectEntries>(entries: E) =>
  v.pipe(v.custom(isRecord, 'must be an object'), v.object(entries));

/** An absent section equals an empty one. */
export const section = <E extends v.ObjectEntries>(entries: E) => v.nullish(object(entries), {});

/** @param most a limit of the placement, also in the definition; longer lists are not read */
export const listOf = <S extends v.GenericSchema>(item: S, least: number, most: number) =>
  v.pipe(v.array(v.unknown()), v.minLength(least), v.maxLength(most), v.array(item));

export const integer = (least: number, most: number) => {
  const says = `must be a whole number from ${least} to ${most}`;
  return v.pipe(v.number(says), v.integer(says), v.minValue(least, says), v.maxValue(most, says));
};

export const architecture = v.pipe(
  v.string('must be an architecture'),
  v.check(
    (name) => checkArchitecture(name) === undefined,
    ({ input }) => checkArchitecture(input) ?? '',
  ),
);

/** Milliseconds. */
export const duration = v.pipe(
  v.string(),
  v.transform(parseDuration),
  v.number('must be a duration such as 10m'),
);

/** Milliseconds since 1970. */
export const time = v.pipe(v.string(), v.transform(Date.parse), v.number('must be a time in RFC 3339'));

/*
 * Label selectors of Kubernetes: apimachinery pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector,
 * pkg/apis/meta/v1/validation ValidateLabelSelector. The caller decides about an absent selector: here it selects
 * everything, in some APIs nothing.
 */
const requirement = v.pipe(
  object({
    key: v.pipe(v.string(), v.check(isLabelKey, 'must be a label key')),
    operator: v.picklist(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    values: v.optional(v.array(v.custom<string>(isLabelValue, 'must be a label value')), []),
  }),
  v.check(
    ({ operator, values }) => operator.endsWith('In') === values.length > 0,
    'must have values for In and NotIn, and none for other operators',
  ),
);

/** Reads a selector as its requirements, which must all hold. Empty: everything is selected. */
export const labelSelector = v.pipe(
  object({
    matchLabels: v.optional(
      v.pipe(
        v.custom<Readonly<Record<string, unknown>>>(isRecord, 'must be an object'),
        v.transform((labels): unknown[] =>
          Object.entries(labels).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
        ),
        v.array(requirement),
      ),
      {},
    ),
    matchExpressions: v.optional(v.array(requirement), []),
  }),
  v.transform(({ matchLabels, matchExpressions }) => [...matchLabels, ...matchExpressions]),
);

export type Selector = v.InferOutput<typeof labelSelector>;

type Labels = Readonly<Record<string, string>>;

/** Allocates nothing, because it runs for each admission. */
export function selects(selector: Selector, labels: Labels | null | undefined): boolean {
  for (const requirement of selector) if (!meets(requirement, own(labels, requirement.key))) return false;
  return true;
}
