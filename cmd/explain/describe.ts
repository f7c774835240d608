/** An explanation as text: a block per object, with its images and the rules that applied. */
import type { ImageVerdict, PlacementDecision } from '../../src/placement/decision.ts';
import { listed, printable } from '../../src/names/printable.ts';
import { nothing, table } from '../program/table.ts';
import type { Explanation } from './explainer.ts';
import { schedulingOf } from './patched.ts';

const maxCellBytes = 256;
const maxMessageBytes = 2048;
const indent = '  ';

/** Describes an object's decision. Ends with a line break. */
export function describe({ subject, outcome }: Explanation, withPatch: boolean): string {
  const { kind, namespace, name, place } = subject;
  const title = `${kind} ${cell(`${namespace}/${name}`)} (${cell(place)})\n`;
  if ('error' in outcome) {
    const text = `invalid: ${message(outcome.error)}; the webhook would admit it unchanged`;
    return `${title}${indent}${text}\n`;
  }
  const { decision, patch, patched, basePath, warnings } = outcome;
  return [
    title,
    table(summaryOf(decision, patch.length), indent),
    paragraph(imagesOf(decision.images)),
    paragraph(
      decision.images
        .flatMap(errorOf)
        .map((line) => `${indent}${line}\n`)
        .join(''),
    ),
    paragraph(
      table(
        [['RULE', 'WHY'], ...decision.reasons.map(({ rule, message: why }) => [rule, message(why)])],
        indent,
      ),
    ),
    paragraph(warnings.map((warning) => `${indent}warning: ${message(warning)}\n`).join('')),
    ...(withPatch
      ? [paragraph(json('patch', patch)), paragraph(json('after', schedulingOf(patched, basePath)))]
      : []),
  ].join('');
}

function summaryOf(decision: PlacementDecision, operations: number): readonly (readonly string[])[] {
  const { outcome, required, excludedNodes, preferred, preferenceMode, gate } = decision;
  const change = operations === 0 ? 'unchanged' : `changed by ${operations} patch operations`;
  const rows: (readonly string[])[] = [
    ['decision', outcome === 'denied' ? 'denied' : `${outcome}: admitted, ${change}`],
  ];
  if (decision.message !== undefined) rows.push(['because', message(decision.message)]);
  if (required !== undefined)
    rows.push(['requires', required.join(', ') || 'none: the pod would stay pending']);
  if (excludedNodes.length > 0)
    rows.push(['excludes', cell(listed(excludedNodes, (name) => name, maxCellBytes - 32))]);
  if (preferred.length > 0) {
    const weighed = preferred.map(({ architecture, weight }) => `${architecture} (weight ${weight})`);
    rows.push(['prefers', `${weighed.join(', ')}, ${preferenceMode}`]);
  }
  if (gate) rows.push(['gate', 'waits until the facts of its images are known']);
  return rows;
}

function imagesOf(images: readonly ImageVerdict[]): string {
  if (images.length === 0) return '';
  const header = ['IMAGE', 'USED BY', 'ARCHITECTURES', 'SOURCE', 'CREDENTIAL', 'ENDPOINT'];
  return table([header, ...images.map(imageRow)], indent);
}

function imageRow({ image, usedBy, architectures, unknown, facts }: ImageVerdict): readonly string[] {
  const allowed = unknown === undefined ? (architectures?.join(' ') ?? 'any') : `unknown (${unknown})`;
  const asked = facts !== undefined && facts.endpoint !== '';
  return [
    cell(image),
    cell(usedBy.join(' ')),
    cell(allowed),
    facts && !facts.error ? facts.source : nothing,
    asked && !facts.error ? facts.credentialSource : nothing,
    asked ? cell(facts.endpoint) : nothing,
  ];
}

function errorOf({ image, facts }: ImageVerdict): readonly string[] {
  return facts?.error ? [`${cell(image)}: ${facts.error.code}: ${message(facts.error.message)}`] : [];
}

function json(title: string, value: unknown): string {
  return `${indent}${title}: ${JSON.stringify(value, undefined, 2).replaceAll('\n', `\n${indent}`)}\n`;
}

/** With an empty line before it, if there is text. */
function paragraph(text: string): string {
  return text === '' ? '' : `\n${text}`;
}

function cell(text: string): string {
  return printable(text, maxCellBytes) || nothing;
}

function message(text: string): string {
  return printable(text, maxMessageBytes);
}
