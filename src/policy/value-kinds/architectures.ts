/** Kinds of values about architectures and nodes: names, weights, taints, tolerations, required labels, overrides. */
import type { Toleration } from '../../kube/api/objects.ts';
import { choice, integer, listOf, refuse, shown, tableOf, text } from './plain.ts';
import { architecturesOfNodes, namesElsewhere } from '../../names/architecture.ts';
import { isLabelKey, isNonEmptyLabelValue } from '../../names/labels.ts';
import type { ArchitectureRules, TolerationTemplate } from '../effective/policy.ts';
import { oneOrMore, record } from './records.ts';

/** Architectures of an image. They replace those in its registry. */
export interface ImageOverride {
  /** A glob over `domain/path`, with `:tag` or `@digest` or without. */
  readonly match: string;
  /** Empty: the image constrains nothing. */
  readonly architectures: readonly string[];
}

/** An architecture name must be a valid label value that nodes can have. */
export function checkArchitecture(name: string): string | undefined {
  if (!isNonEmptyLabelValue(name))
    return `${shown(name)} cannot be an architecture: it is no valid label value`;
  const lower = name.toLowerCase();
  const label = namesElsewhere.get(lower) ?? (architecturesOfNodes.has(lower) ? lower : name);
  return label === name ? undefined : `${shown(name)} is no architecture of a node; write ${label}`;
}

function checkKey(key: string): string | undefined {
  return isLabelKey(key) ? undefined : `${shown(key)} is no valid label key`;
}

function checkValue(value: string): string | undefined {
  return isNonEmptyLabelValue(value) ? undefined : `${shown(value)} is no valid label value`;
}

export const architecture = text('architecture', checkArchitecture);

/** Kubernetes takes weights from 1 to 100 for a preferred node affinity term. */
export const weights = tableOf(checkArchitecture, integer(1, 100));

export const labelKey = text('label key', checkKey);

const effect = choice(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

export const tolerationTemplate = record({
  name: 'toleration template',
  fields: { key: labelKey, operator: choice(['Equal']), effect },
  make: ({ key, effect }, report): TolerationTemplate | undefined =>
    key === undefined
      ? refuse(report, 'needs a key: the key of the taint that carries the architecture as its value')
      : { key, operator: 'Equal', ...(effect && { effect }) },
});

/** Seconds as Kubernetes counts them; ten years are more than any pod waits. */
const seconds = integer(0, 315_360_000);

const toleration = record({
  name: 'toleration',
  fields: {
    key: labelKey,
    operator: choice(['Equal', 'Exists']),
    value: text('label value', checkValue),
    effect,
    tolerationSeconds: seconds,
  },
  // The rules of kubernetes pkg/apis/core/validation ValidateTolerations: the API server would refuse every pod.
  make: (given, report): Toleration | undefined => {
    if (given.key === undefined && given.operator !== 'Exists') {
      return refuse(report, 'needs a key, or the operator Exists, which then tolerates every taint');
    }
    if (given.operator === 'Exists' && given.value !== undefined) {
      return refuse(report, 'must have no value where the operator is Exists', ['value']);
    }
    if (given.tolerationSeconds !== undefined && given.effect !== 'NoExecute') {
      return refuse(report, 'has a meaning only with the effect NoExecute', ['tolerationSeconds']);
    }
    return { operator: 'Equal', ...given };
  },
});

export const architectureRules = record({
  name: 'rules for an architecture',
  fields: {
    taintsToTolerate: oneOrMore(toleration),
    requireNodeLabels: tableOf(checkKey, text('label value', checkValue)),
  },
  make: ({ taintsToTolerate = [], requireNodeLabels = {} }): ArchitectureRules => ({
    taintsToTolerate,
    requireNodeLabels,
  }),
});

/** Limits of the matching time, as in `images/sources/overrides.ts`. */
const maxPatternLength = 512;
const maxPatternStars = 8;

function checkPattern(pattern: string): string | undefined {
  if (pattern.length > maxPatternLength) return `must not be longer than ${maxPatternLength} characters`;
  if ((pattern.match(/\*+/g) ?? []).length > maxPatternStars)
    return `must not have more than ${maxPatternStars} stars`;
  return /^[^\s@:]+(?::\d+\/[^\s@:]+)*(?::[^\s@:/]+)?(?:@[^\s@]+)?$/.test(pattern)
    ? undefined
    : `must be an image such as registry.example.com/team/*:latest, not ${shown(pattern)}`;
}

export const imageOverride = record({
  name: 'image override',
  fields: { match: text('pattern', checkPattern), architectures: listOf(architecture) },
  make: ({ match, architectures }, report): ImageOverride | undefined => {
    if (match === undefined) return refuse(report, 'needs match: a pattern of image references');
    if (architectures === undefined) return refuse(report, 'needs architectures: a list, which may be empty');
    return { match, architectures };
  },
});
