/**
 * Label selectors of Kubernetes: apimachinery pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector,
 * pkg/apis/meta/v1/validation ValidateLabelSelector. The caller decides about an absent selector: here it selects
 * everything, in some APIs nothing.
 */
import * as v from 'valibot';
import { isLabelKey, isLabelValue, meets } from '../../names/labels.ts';
import { isRecord, own } from '../../names/values.ts';
import { object } from '../resources/schemas.ts';

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
