/**
 * Label selectors of Kubernetes: apimachinery pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector,
 * pkg/apis/meta/v1/validation ValidateLabelSelector. The caller decides about an absent selector: here it selects
 * everything, in some APIs nothing.
 */
import { isRecord, own } from '../../names/values.ts';
import { isLabelKey, isLabelValue, meets } from '../../names/labels.ts';

const selectorOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;
type SelectorOperator = (typeof selectorOperators)[number];

export interface SelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  /** Empty for `Exists` and `DoesNotExist`. */
  readonly values: readonly string[];
}

/** All requirements must hold. Empty: everything is selected. */
export type Selector = readonly SelectorRequirement[];

type Labels = Readonly<Record<string, string>>;

/** @param problems gets a message for each problem; the result is then meaningless */
export function readSelector(value: unknown, path: string, problems: string[]): Selector {
  if (!isRecord(value)) {
    problems.push(`${path} must be an object`);
    return [];
  }
  const { matchLabels = {}, matchExpressions = [] } = value;
  const requirements: SelectorRequirement[] = [];
  if (isRecord(matchLabels)) {
    for (const [key, wanted] of Object.entries(matchLabels)) {
      const place = `${path}.matchLabels[${key.slice(0, 64)}]`;
      checkKey(key, place, problems);
      if (isLabelValue(wanted)) requirements.push({ key, operator: 'In', values: [wanted] });
      else problems.push(`${place} must be a label value`);
    }
  } else problems.push(`${path}.matchLabels must be an object`);
  if (Array.isArray(matchExpressions)) {
    for (const [index, expression] of matchExpressions.entries()) {
      const found = readExpression(expression, `${path}.matchExpressions[${index}]`, problems);
      if (found) requirements.push(found);
    }
  } else problems.push(`${path}.matchExpressions must be a list`);
  return requirements;
}

function readExpression(value: unknown, path: string, problems: string[]): SelectorRequirement | undefined {
  if (!isRecord(value)) return void problems.push(`${path} must be an object`);
  const { key, operator: written, values = [] } = value;
  const operator = selectorOperators.find((candidate) => candidate === written);
  if (operator === undefined)
    return void problems.push(`${path}.operator must be one of ${selectorOperators.join(', ')}`);
  if (typeof key !== 'string') return void problems.push(`${path}.key must be a label key`);
  checkKey(key, `${path}.key`, problems);
  const takesValues = operator === 'In' || operator === 'NotIn';
  if (!Array.isArray(values) || !values.every(isLabelValue))
    return void problems.push(`${path}.values must be a list of label values`);
  if (takesValues && values.length === 0) problems.push(`${path}.values must not be empty for ${operator}`);
  if (!takesValues && values.length > 0) problems.push(`${path}.values must be empty for ${operator}`);
  return { key, operator, values };
}

function checkKey(key: string, path: string, problems: string[]): void {
  if (!isLabelKey(key)) problems.push(`${path} is not a valid label key`);
}

/** Allocates nothing, because it runs for each admission. */
export function selects(selector: Selector, labels: Labels | null | undefined): boolean {
  for (const requirement of selector) if (!meets(requirement, own(labels, requirement.key))) return false;
  return true;
}
