/** Compares a response with the expectation, in the patched object and not in the patch. */
import { isDeepStrictEqual } from 'node:util';
import type { NodeSelectorTerm, PodSpec } from '../../src/kube/api/objects.ts';
import { keys } from '../../src/names/keys.ts';
import type { Answer } from './admit.ts';
import type { Example } from './examples.ts';
import { expected as expectations, type Expected } from './expected.ts';
import { podIn, type Knowledge } from './knowledge.ts';

/**
 * Checks one example.
 * @returns the differences, for people
 */
export function problemsOf(example: Example, answer: Answer, knowledge: Knowledge): string[] {
  const expected = expectations[example.file];
  if (!expected) return [`examples/demo/expected.ts does not say what is expected of ${example.file}`];
  const before = podIn(example.request).pod.spec;
  const after = podIn({ ...example.request, object: answer.patched }).pod.spec;
  const checks = [
    ...answerChecks(expected, answer, knowledge),
    ...placementChecks(expected, before, after),
    ...Object.entries(expected.learned ?? {}).map(([image, how]): Check => {
      const facts = knowledge.decision.images.find((verdict) => verdict.image === image)?.facts;
      return [`how ${image} was learned`, facts?.error?.code ?? facts?.credentialSource, how];
    }),
    ...knowledge.decision.images
      .filter(({ unknown }) => unknown === undefined)
      .map(({ image, facts }): Check => [`source of the facts of ${image}`, facts?.source, 'memory']),
  ];
  return wrongOf(checks);
}

/**
 * Checks only the patched pod or pod template.
 * @returns the differences, for people
 */
export function placementProblemsOf(example: Example, after: PodSpec): string[] {
  const expected = expectations[example.file];
  return expected === undefined
    ? [`nothing is expected of ${example.file}`]
    : wrongOf(placementChecks(expected, podIn(example.request).pod.spec, after));
}

function wrongOf(checks: readonly Check[]): string[] {
  return checks
    .filter(([, found, wanted]) => !isDeepStrictEqual(found, wanted))
    .map(([what, found, wanted]) => `${what}: ${shown(found)} instead of ${shown(wanted)}`);
}

/** A checked field, its value, its expected value. */
type Check = readonly [what: string, found: unknown, wanted: unknown];

function answerChecks(expected: Expected, { response, operations }: Answer, knowledge: Knowledge): Check[] {
  const { warnings = [], status } = response;
  const patterns = expected.warnings ?? [];
  return [
    ['outcome', knowledge.decision.outcome, expected.outcome],
    ['allowed', response.allowed, expected.outcome !== 'denied'],
    ['patch beside what follows from the facts of the agents', operations, knowledge.operations],
    ['number of warnings', warnings.length, patterns.length],
    ...patterns.map((pattern, index): Check => [
      `warning ${index + 1}`,
      warnings[index],
      pattern.test(warnings[index] ?? '') ? warnings[index] : pattern,
    ]),
    ...(expected.denied ?? []).map((pattern): Check => [
      'message',
      status?.message,
      pattern.test(status?.message ?? '') ? status?.message : pattern,
    ]),
  ];
}

function placementChecks(expected: Expected, before: PodSpec, after: PodSpec): Check[] {
  const { required, tolerated = required ?? [], preferred = {} } = expected;
  const terms = requiredTerms(after);
  const preferences = preferredTerms(after);
  return [
    ['required terms', terms.length, expected.terms ?? (required ? 1 : 0)],
    ...terms.map((term, index): Check => [
      `architectures of term ${index + 1}`,
      architecturesOf(term),
      required,
    ]),
    ['tolerated architectures', toleratedArchitectures(after), [...tolerated].sort()],
    [
      'preferred architectures',
      Object.fromEntries(
        preferences.flatMap(({ weight, preference }) =>
          (architecturesOf(preference) ?? []).map((architecture) => [architecture, weight]),
        ),
      ),
      preferred,
    ],
    [
      'scheduling gates',
      (after.schedulingGates ?? []).map(({ name }) => name),
      expected.outcome === 'gated' ? [keys.gate] : [],
    ],
    ['tolerations of its own', startOf(after.tolerations, before.tolerations), before.tolerations ?? []],
    ['preferences of its own', startOf(preferences, preferredTerms(before)), preferredTerms(before)],
    ['nodeSelector', after.nodeSelector, before.nodeSelector],
  ];
}

function requiredTerms(spec: PodSpec): readonly NodeSelectorTerm[] {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
}

function preferredTerms(spec: PodSpec) {
  return spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
}

function architecturesOf(term: NodeSelectorTerm): string[] | undefined {
  const expressions = term.matchExpressions?.filter(({ key }) => key === keys.architectureLabel) ?? [];
  return expressions.length === 0 ? undefined : expressions.flatMap(({ values }) => values ?? []).sort();
}

function toleratedArchitectures(spec: PodSpec): string[] {
  const ours = spec.tolerations?.filter(({ key }) => key === keys.architectureLabel) ?? [];
  return ours.map(({ value }) => value ?? '').sort();
}

function startOf<T>(list: readonly T[] | undefined, own: readonly T[] | undefined): readonly T[] {
  return (list ?? []).slice(0, own?.length ?? 0);
}

function shown(value: unknown): string {
  return value instanceof RegExp ? String(value) : (JSON.stringify(value) ?? 'none');
}
