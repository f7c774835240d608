/** The results of `check` as a table for people and as JSON for programs. */
import { cell, counted, jsonText, nothing, table } from '../program/table.ts';
import type { AllowEntry, EntryState } from './allow-list.ts';
import { classes, type Result } from './verdict.ts';

export interface Checked {
  readonly architectures: readonly string[];
  readonly results: readonly Result[];
  readonly allowList: readonly (readonly [AllowEntry, EntryState])[];
}

const ranks = ['finding', 'unknown', 'fine'] as const;

/** One row for each image and place, those that fail first. Below it, the numbers of images. */
export function asTable({ architectures, results }: Checked): string {
  const rows = [
    ...Map.groupBy(results, (each) => `${placeOf(each)} ${each.usedBy} ${each.image}`).values(),
  ].sort((a, b) => rankOf(a) - rankOf(b));
  const head = ['PLACE', 'WORKLOAD', 'IMAGE', ...architectures.map((name) => name.toUpperCase()), 'WHY'];
  const lines = rows.map((row) => [
    ...row.slice(0, 1).flatMap((first) => [cell(placeOf(first)), cell(workloadOf(first)), cell(first.image)]),
    ...architectures.map((name) => row.find(({ architecture }) => architecture === name)?.verdict ?? nothing),
    [...new Set(row.map(({ why }) => why).filter((why) => why !== ''))].join('; ') || nothing,
  ]);
  return `${table([head, ...lines])}\n${summaryOf(results)}\n`;
}

export function placeOf({ file, line }: Result): string {
  return `${file}:${line}`;
}

export function workloadOf({ namespace, kind, name }: Result): string {
  return [namespace, kind, name].filter((part) => part !== '').join('/');
}

function rankOf(row: readonly Result[]): number {
  return Math.min(...row.map(({ verdict }) => ranks.indexOf(classes[verdict])));
}

/** `4 images: 2 ok, 1 missing, 1 rate-limited`. An image counts by its first verdict that fails. */
function summaryOf(results: readonly Result[]): string {
  const images = [...Map.groupBy(results, ({ image }) => image).values()];
  const worst = images.flatMap((all) => all.toSorted((a, b) => rankOf([a]) - rankOf([b])).slice(0, 1));
  const counts = [...Map.groupBy(worst, ({ verdict }) => verdict)].map(
    ([verdict, all]) => `${all.length} ${verdict}`,
  );
  return [counted(images.length, 'image'), counts.join(', ')].filter(Boolean).join(': ');
}

/** Documented in `docs/use/check.md`. */
export function asJson({ architectures, results, allowList }: Checked): string {
  const document = {
    architectures,
    results: results.map((result) => ({ ...result, class: classes[result.verdict] })),
    // JSON has no functions, so `matches` is left out.
    allowList: allowList.map(([entry, state]) => ({ ...entry, state })),
  };
  return jsonText(document);
}
