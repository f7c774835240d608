/** Kinds of values about architectures and nodes. */
import type { Toleration } from '../../kube/api/objects.ts';
import type { TextRule } from '../settings/setting.ts';
import { atMostStars, brokenBy, choice, integer, listOf, matching, refuse, tableOf, text } from './plain.ts';
import { architecturesOfNodes, knownArchitectures, namesElsewhere } from '../../names/architecture.ts';
import { byName } from '../../names/values.ts';
import { keyPatterns, namePattern } from '../../names/labels.ts';
import type { ArchitectureRules, TolerationTemplate } from '../effective/policy.ts';
import { oneOrMore, record } from './records.ts';

/** Every amd64 CPU has level 1. */
const levels = ['v2', 'v3', 'v4'] as const;

/** Architectures of an image, which replace those in its registry, and the level of x86-64 that it needs. */
export interface ImageOverride {
  /** A glob over `domain/path`, with `:tag` or `@digest` or without. */
  readonly match: string;
  /** Empty: the image constrains nothing. Absent: those that the registry has. */
  readonly architectures?: readonly string[];
  readonly level?: (typeof levels)[number];
}

/** An architecture name must be a valid label value that nodes can have. */
const labelOfNodes: TextRule = {
  match: [{ pattern: namePattern, says: '{} cannot be an architecture: it is not a valid label value' }],
  instead: {
    names: {
      ...Object.fromEntries([...architecturesOfNodes].map((name) => [name, name])),
      ...Object.fromEntries(namesElsewhere),
    },
    says: '{} is not an architecture of a node; write ',
  },
};

/** The check of custom resources. Unlike that of settings, it suggests no similar name: their definitions cannot. */
export function checkArchitecture(name: string): string | undefined {
  return brokenBy(labelOfNodes, name);
}

/** The rule of settings. */
export const architectureName: TextRule = {
  ...labelOfNodes,
  similar: { names: [...knownArchitectures].sort(byName), says: '{} is an unknown architecture' },
};

export const architecture = text('architecture', architectureName);

const wrongKey = '{} is not a valid label key';
const labelKeyName: TextRule = { match: keyPatterns.map((pattern) => ({ pattern, says: wrongKey })) };
const labelValue = text('label value', matching(namePattern, '{} is not a valid label value'));

/** Kubernetes takes weights from 1 to 100 for a preferred node affinity term. */
export const weights = tableOf(architectureName, integer(1, 100));

export const labelKey = text('label key', labelKeyName);

const effect = choice(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

export const tolerationTemplate = record({
  name: 'toleration template',
  fields: { key: labelKey, operator: choice(['Equal']), effect },
  schema: { required: ['key'] },
  make: ({ key, effect }, report): TolerationTemplate | undefined =>
    key === undefined
      ? refuse(report, 'needs a key: the key of the taint that carries the architecture as its value')
      : { key, operator: 'Equal', ...(effect && { effect }) },
});

/** Seconds as Kubernetes counts them; ten years are more than any pod waits. */
const seconds = integer(0, 315_360_000);

const exists = { operator: { const: 'Exists' } };

const toleration = record({
  name: 'toleration',
  fields: {
    key: labelKey,
    operator: choice(['Equal', 'Exists']),
    value: labelValue,
    effect,
    tolerationSeconds: seconds,
  },
  schema: {
    allOf: [
      { anyOf: [{ required: ['key'] }, { required: ['operator'], properties: exists }] },
      { not: { required: ['operator', 'value'], properties: exists } },
      {
        anyOf: [
          { not: { required: ['tolerationSeconds'] } },
          { required: ['effect'], properties: { effect: { const: 'NoExecute' } } },
        ],
      },
    ],
  },
  // As kubernetes pkg/apis/core/validation ValidateTolerations: the API server would refuse every pod.
  make: (given, report): Toleration | undefined => {
    if (given.key === undefined && given.operator !== 'Exists') {
      return refuse(report, 'needs a key, or the operator Exists, which then tolerates every taint');
    }
    if (given.operator === 'Exists' && given.value !== undefined) {
      return refuse(report, 'must have no value if the operator is Exists', ['value']);
    }
    if (given.tolerationSeconds !== undefined && given.effect !== 'NoExecute') {
      return refuse(report, 'applies only to the effect NoExecute', ['tolerationSeconds']);
    }
    return { operator: 'Equal', ...given };
  },
});

export const architectureRules = record({
  name: 'rules for an architecture',
  fields: {
    taintsToTolerate: oneOrMore(toleration),
    requireNodeLabels: tableOf(labelKeyName, labelValue),
  },
  make: ({ taintsToTolerate = [], requireNodeLabels = {} }): ArchitectureRules => ({
    taintsToTolerate,
    requireNodeLabels,
  }),
});

/** Limits of the matching time, as in `images/sources/overrides.ts`. */
const maxPatternLength = 512;
const maxPatternStars = 8;

/** ASCII without spaces, `@` and `:`, because RE2 and JavaScript differ on other spaces. */
const path = '[!-9;-?A-~]+';
const pattern: TextRule = {
  match: [
    {
      pattern: `^[\\s\\S]{0,${maxPatternLength}}$`,
      says: `must not be longer than ${maxPatternLength} characters`,
    },
    { pattern: atMostStars(maxPatternStars), says: `must not have more than ${maxPatternStars} stars` },
    {
      pattern: `^${path}(?::[0-9]+/${path})*(?::[!-.0-9;-?A-~]+)?(?:@[!-?A-~]+)?$`,
      says: 'must be an image such as registry.example.com/team/*:latest, not {}',
    },
  ],
};

export const imageOverride = record({
  name: 'image override',
  fields: { match: text('pattern', pattern), architectures: listOf(architecture), level: choice(levels) },
  schema: {
    required: ['match'],
    allOf: [{ anyOf: [{ required: ['architectures'] }, { required: ['level'] }] }],
  },
  make: ({ match, architectures, level }, report): ImageOverride | undefined => {
    if (match === undefined) return refuse(report, 'needs match: a pattern of image references');
    if (architectures === undefined && level === undefined)
      return refuse(report, 'needs architectures, a list, which may be empty, or level, such as v3');
    return { match, ...(architectures && { architectures }), ...(level && { level }) };
  },
});
