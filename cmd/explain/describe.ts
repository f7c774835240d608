/** An explanation as text, a block per object, and as data for `--output json` and `yaml`. */
import jsonPatch from 'fast-json-patch';
import type { NodeSelectorTerm } from '../../src/kube/api/objects.ts';
import type { ImageVerdict, PlacementDecision, Widened } from '../../src/placement/decision.ts';
import { listed, printable } from '../../src/names/printable.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { keptTerms, namedArchitectures } from '../../src/placement/pod/terms.ts';
import { outcomeText } from '../../src/placement/record/write.ts';
import {
  describeDetails,
  errorText,
  isUnknown,
  warningsAbout,
} from '../../src/placement/rules/images/unknown.ts';
import { describeRule } from '../../src/placement/rules/rules.ts';
import { cell, counted, nothing, table, tableOf, type Column } from '../program/table.ts';
import type { BrokenImage } from '../../src/images/sources/broken-images.ts';
import { isAdmitted, type Explanation, type RunningNow } from './explainer.ts';

/** A cell of a table has 256, with room for `and … more`. */
const maxNodesBytes = 224;
const maxMessageBytes = 2048;
/** Pods of one workload differ during a rollout. */
const maxPodRows = 5;
const indent = '  ';

export function describe({ subject, outcome }: Explanation, withPatch: boolean): string {
  const { kind, namespace, name, place } = subject;
  const title = `${kind} ${cell(`${namespace}/${name}`)} (${cell(place)})\n`;
  if ('error' in outcome) {
    const text = `invalid: ${message(outcome.error)}; the webhook would admit it unchanged`;
    return `${title}${indent}${text}\n`;
  }
  const { decision, patch, patched, basePath, broken, running, pods, isOfPods } = outcome;
  return [
    title,
    table(
      [
        // A pod keeps its decision, which its record has.
        ...(running ? [['now', `${placeOf(running)}; ${recordOf(running)}`]] : []),
        ...podsOf(pods),
        ...summaryOf(isOfPods ? 'its pods' : 'decision', decision, running ? undefined : patch.length),
      ],
      indent,
    ),
    paragraph(decision.images.length === 0 ? '' : tableOf(imageColumns, decision.images, indent)),
    paragraph(lines(decision.images.flatMap(errorOf))),
    paragraph(lines(broken.map(brokenLine))),
    paragraph(tableOf(reasonColumns, reasonsOf(decision), indent)),
    paragraph(lines(warningsOf(decision).map((warning) => `warning: ${message(warning)}`))),
    ...(withPatch
      ? [paragraph(json('patch', patch)), paragraph(json('after', schedulingOf(patched, basePath)))]
      : []),
  ].join('');
}

/** Pods of a workload, those that were decided alike in one line. */
function podsOf(pods: readonly RunningNow[]): readonly (readonly string[])[] {
  const groups = [...Map.groupBy(pods, (pod) => `${placeOf(pod, false)}; ${recordOf(pod)}`)];
  return groups.slice(0, maxPodRows).map(([text, [first, ...more]], index) => {
    const others = more.length === 0 ? '' : ` and ${more.length} more`;
    return [index === 0 ? 'now' : '', `pod ${cell(first?.name ?? '')}${others} ${text}`];
  });
}

function placeOf({ node, architecture = 'architecture not known' }: RunningNow, withNode = true): string {
  if (node === undefined) return 'on no node yet';
  return withNode ? `on node ${cell(node)} (${cell(architecture)})` : `on ${cell(architecture)}`;
}

function recordOf({ outcome, required, widened }: RunningNow): string {
  if (outcome === undefined) return 'no record of a decision';
  return `decided before: ${outcomeText(outcome, required, widened ?? false)}`;
}

/** @param operations of the patch; `undefined`: the pod runs already, and nothing changes */
function summaryOf(
  subject: string,
  decision: PlacementDecision,
  operations: number | undefined,
): readonly (readonly string[])[] {
  const { outcome, required, amd64Level, excludedNodes, preferred, preferenceMode, gate } = decision;
  const change = operations ? `changed by ${counted(operations, 'patch operation')}` : 'unchanged';
  const admitted = outcome === 'denied' ? 'denied' : `${outcome}: admitted, ${change}`;
  const rows: (readonly string[])[] = [
    operations === undefined ? ['created again', outcome] : [subject, admitted],
  ];
  if (decision.message !== undefined) rows.push(['because', message(decision.message)]);
  // Nothing is required of a pod that does not exist.
  if (outcome === 'denied') return rows;
  if (required !== undefined) rows.push(['requires', requirementOf(decision)]);
  if (decision.widened) rows.push(['instead of', cell(describeWidened(decision.widened))]);
  if (amd64Level) rows.push(['on amd64', `${amd64Level.key} in ${amd64Level.values.join(', ')}`]);
  if (excludedNodes.length > 0)
    rows.push(['excludes', cell(listed(excludedNodes, (name) => name, maxNodesBytes))]);
  if (preferred.length > 0) {
    const weighed = preferred.map(({ architecture, weight }) => `${architecture} (weight ${weight})`);
    rows.push(['prefers', `${weighed.join(', ')}, ${preferenceMode}`]);
  }
  if (gate) {
    const isForRollout = decision.reasons.some(({ rule }) => rule === 'rollout-choose');
    const until = isForRollout
      ? 'the leader has chosen its architecture'
      : 'the facts of its images are known';
    rows.push(['gate', `waits until ${until}`]);
  }
  return rows;
}

/** The required architectures, and what the pod's own terms allow beside them: terms are ORed. */
function requirementOf({ required = [], own }: PlacementDecision): string {
  const kept = keptTerms(own?.terms).map((term) => describeKept(term));
  if (kept.length > 0)
    return `${required.join(', ') || 'none'}; its own terms also allow ${cell([...new Set(kept)].join(', '))}`;
  return required.join(', ') || 'none: the pod would stay pending';
}

function describeKept(term: NodeSelectorTerm): string {
  const named = [...(namedArchitectures(term) ?? [])].join(' ');
  const node = term.matchFields?.find(({ operator }) => operator === 'In')?.values?.[0];
  if (node !== undefined) return named === '' ? `node ${node}` : `node ${node} (${named})`;
  return named || 'no architecture';
}

/** The architectures that the pod named, as it wrote them. */
function describeWidened({ nodeSelector, expressions }: Widened): string {
  const labels = Object.entries(nodeSelector).map(([key, value]) => `nodeSelector ${key}=${value}`);
  const terms = expressions.map(({ key, values = [] }) => `required ${key} in ${values.join(', ')}`);
  return [...labels, ...terms].join('; ');
}

const imageColumns: readonly Column<ImageVerdict>[] = [
  ['IMAGE', ({ image }) => cell(image)],
  ['USED BY', ({ usedBy }) => cell(usedBy.join(' '))],
  [
    'ARCHITECTURES',
    ({ architectures, unknown }) =>
      cell(unknown === undefined ? (architectures?.join(' ') ?? 'any') : `unknown (${unknown})`),
  ],
  ['SOURCE', ({ facts }) => (facts?.error ? nothing : facts?.source)],
  ['CREDENTIAL', ({ facts }) => (facts?.error || !facts?.endpoint ? nothing : facts.credentialSource)],
  ['ENDPOINT', ({ facts }) => cell(facts?.endpoint)],
];

function errorOf({ image, facts }: ImageVerdict): readonly string[] {
  if (!facts?.error) return [];
  return [`${cell(image)}: ${facts.error.code}: ${message(errorText(facts.error))}`];
}

/** Errors of images are printed once, before the rules. */
function reasonsOf({ images, reasons }: PlacementDecision): PlacementDecision['reasons'] {
  const isPrinted = images.filter(isUnknown).every(({ facts }) => facts?.error !== undefined);
  const errors = isPrinted ? describeDetails(images) : '';
  return reasons.map(({ rule, message: why }) => {
    return { rule, message: errors === '' ? why : why.replace(errors, () => 'see above') };
  });
}

const reasonColumns: readonly Column<PlacementDecision['reasons'][number]>[] = [
  ['RULE', ({ rule }) => rule],
  ['WHY', ({ message: why }) => message(why)],
];

function warningsOf({ images, warnings }: PlacementDecision): readonly string[] {
  const printed = new Set(warningsAbout(images));
  return warnings.filter((warning) => !printed.has(warning));
}

function brokenLine({ image, architecture, level, until }: BrokenImage): string {
  const end = new Date(until).toISOString();
  if (level !== undefined)
    return `${cell(image)} is recorded as needing x86-64-v${level} until ${end}: pods of this namespace ended on a CPU below it`;
  return `${cell(image)} is recorded as broken on ${architecture} until ${end}: pods of this namespace ended with an exec format error`;
}

function json(title: string, value: unknown): string {
  return `${indent}${title}: ${JSON.stringify(value, undefined, 2).replaceAll('\n', `\n${indent}`)}\n`;
}

/** Puts an empty line before text. */
function paragraph(text: string): string {
  return text === '' ? '' : `\n${text}`;
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${indent}${text}\n`).join('');
}

function message(text: string): string {
  return printable(text, maxMessageBytes);
}

const schedulingFields = ['schedulingGates', 'nodeSelector', 'affinity', 'tolerations'] as const;

/** The scheduling fields of a pod or pod template. @param basePath JSON pointer to the pod in the object */
function schedulingOf(object: JsonObject, basePath: string): JsonObject {
  const spec = jsonPatch.getValueByPointer(object, `${basePath}/spec`) as JsonObject;
  return Object.fromEntries(
    schedulingFields.filter((field) => spec[field] !== undefined).map((field) => [field, spec[field]]),
  );
}

/** Plain data, documented in `docs/use/explain.md`. @param withPatch adds the patch and the patched object */
export function resultOf(explanation: Explanation, withPatch: boolean) {
  const { subject, outcome } = explanation;
  const { kind, namespace, name, place } = subject;
  const head = { kind, namespace, name, place, admitted: isAdmitted(explanation) };
  if ('error' in outcome) return { ...head, error: outcome.error };
  const { decision, patch, patched, broken, running, pods } = outcome;
  const { message, os, required, widened, own, preferred, preferenceMode, tolerations, gate } = decision;
  return {
    ...head,
    running,
    pods: ifAny(pods),
    outcome: decision.outcome,
    message,
    os,
    required,
    widened,
    keptTerms: required && ifAny(keptTerms(own?.terms)),
    ...(preferred.length > 0 && { preferred, preferenceMode }),
    nodeLabels: ifAny(decision.nodeLabels),
    nodeLabelsByArchitecture: ifAny(decision.nodeLabelsByArchitecture),
    amd64Level: decision.amd64Level,
    excludedNodes: ifAny(decision.excludedNodes),
    tolerations,
    gate,
    images: decision.images.map(imageResult),
    broken: ifAny(broken.filter(({ level }) => level === undefined).map(noteResult)),
    levels: ifAny(broken.filter(({ level }) => level !== undefined).map(noteResult)),
    rules: decision.reasons.map(({ rule, message }) => ({ rule, message, meaning: describeRule(rule) })),
    warnings: decision.warnings,
    ...(withPatch && { patch, patched }),
  };
}

/** Fields without a value are not in the output. */
function ifAny<T extends object>(values: T): T | undefined {
  return Object.keys(values).length > 0 ? values : undefined;
}

function noteResult({ image, digest, architecture, level, until }: BrokenImage): object {
  const what = level === undefined ? { architecture } : { level: `v${level}` };
  return { image, digest, ...what, until: new Date(until).toISOString() };
}

/** Image facts as in the agent API and `inspect`. */
function imageResult({ image, usedBy, architectures, fit, unknown, facts }: ImageVerdict) {
  const dependsOn = fit && ifAny(Object.fromEntries(fit.dependsOn));
  return { image, usedBy, architectures: facts && architectures, dependsOn, unknown, ...facts };
}
