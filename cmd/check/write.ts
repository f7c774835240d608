/** The results of `check`: a table for people, JSON for programs, JUnit XML and SARIF for pipelines. */
import { relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { standardInput } from '../objects/documents.ts';
import { cell, counted, jsonText, tableOf, type Column } from '../program/table.ts';
import { programVersion } from '../program/version.ts';
import type { AllowEntry, EntryState } from './allow-list.ts';
import { classes, type Result, type CheckVerdict } from './verdict.ts';

export interface Checked {
  readonly architectures: readonly string[];
  readonly results: readonly Result[];
  readonly allowList: readonly (readonly [AllowEntry, EntryState])[];
}

const ranks = ['finding', 'unknown', 'fine'] as const;

/** One row for each image of a workload and place, those that fail first. Below it, the numbers of images. */
export function asTable({ architectures, results }: Checked): string {
  const rows = [
    ...Map.groupBy(results, (each) =>
      // In JSON, every image is in line 1.
      JSON.stringify([placeOf(each), workloadOf(each), each.usedBy, each.image]),
    ).values(),
  ].sort((a, b) => rankOf(a) - rankOf(b));
  const columns: readonly Column<readonly Result[]>[] = [
    ['PLACE', ([first]) => first && cell(placeOf(first))],
    ['WORKLOAD', ([first]) => first && cell(workloadOf(first))],
    ['IMAGE', ([first]) => cell(first?.image)],
    ...architectures.map((name): Column<readonly Result[]> => [
      name.toUpperCase(),
      (row) => row.find(({ architecture }) => architecture === name)?.verdict,
    ]),
    ['WHY', (row) => [...new Set(row.map(({ why }) => why).filter((why) => why !== ''))].join('; ')],
  ];
  return `${tableOf(columns, rows)}\n${summaryOf(results)}\n`;
}

function placeOf({ file, line }: Result): string {
  return `${file}:${line}`;
}

function workloadOf({ namespace, kind, name }: Result): string {
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

/** The document of `--output json`, described in `docs/use/check.md`. */
export function documentOf({ architectures, results, allowList }: Checked): object {
  return {
    architectures,
    results: results.map((result) => ({ ...result, class: classes[result.verdict] })),
    // JSON has no functions, so `matches` is left out.
    allowList: allowList.map(([entry, state]) => ({ ...entry, state })),
  };
}

/**
 * JUnit XML, as Jenkins and GitLab read it. The elements and attributes are those of Jenkins'
 * `junit-10.xsd`, which has no place for a line: it is in the message. Findings are failures, images without
 * an answer are errors, allowed ones are skipped.
 */
export function asJunit({ results }: Checked): string {
  const suites = [...Map.groupBy(results, ({ file }) => file)].map(([file, all]) => {
    const skipped = String(all.filter(({ verdict }) => verdict === 'allowed').length);
    return element('testsuite', { name: file, ...counts(all), skipped, file }, all.map(testCase));
  });
  const top = element('testsuites', { name: 'archwright check', ...counts(results) }, suites);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${top}`;
}

function counts(results: readonly Result[]) {
  const count = (name: string): string =>
    String(results.filter(({ verdict }) => classes[verdict] === name).length);
  return { tests: String(results.length), failures: count('finding'), errors: count('unknown') };
}

function testCase(result: Result): string {
  const { image, usedBy, architecture, verdict, why } = result;
  const message = `${placeOf(result)}: ${verdict}: ${why}`;
  const failure = classes[verdict] === 'finding' ? 'failure' : 'error';
  const outcome =
    verdict === 'allowed' ? element('skipped', { message }) : element(failure, { type: verdict, message });
  const attributes = { classname: workloadOf(result), name: `${usedBy}: ${image} for ${architecture}` };
  return element('testcase', attributes, verdict === 'ok' ? [] : [outcome]);
}

function element(
  name: string,
  attributes: Readonly<Record<string, string>>,
  children: readonly string[] = [],
): string {
  const written = Object.entries(attributes).map(([key, value]) => `${key}="${escaped(value)}"`);
  const head = [name, ...written].join(' ');
  if (children.length === 0) return `<${head}/>\n`;
  // Texts have no line breaks.
  return `<${head}>\n${children.join('').replaceAll(/(^|\n)(?=.)/g, '$1  ')}</${name}>\n`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Names are untrusted, and XML 1.0 has no way to write most control characters. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u{fffe}\u{ffff}]/gu, '?')
    .replaceAll(/[&<>"]/g, (letter) => entities[letter] ?? letter);
}

/** Rules by verdict, and what they say in general. `allowed` results keep no rule of their own. */
const rules: Readonly<Record<Exclude<CheckVerdict, 'ok'>, string>> = {
  missing: 'The image has no platform of the required architecture.',
  pinned: 'The node selector or required affinity of the pod excludes the architecture.',
  'not-found': 'The registry does not have the image.',
  'not-an-image': 'The reference names an artifact that no container can run.',
  invalid: 'The image is not a valid reference.',
  unauthorized: 'The registry refuses access, so the architectures are not known.',
  'rate-limited': 'The registry limits requests, so the architectures are not known.',
  unreachable: 'The registry does not answer, so the architectures are not known.',
  unusable: 'The answer of the registry cannot be used, so the architectures are not known.',
  'never-pulled': 'The image is never pulled, so no registry knows its architectures.',
  allowed: 'The allow-list has the image.',
};
const ids = Object.keys(rules);

const levels = { finding: 'error', unknown: 'warning', fine: 'note' } as const;

/**
 * SARIF 2.1.0, without images that are ok; allowed ones are suppressed.
 * @param directory that relative paths are relative to, such as the root of a repository
 */
export function asSarif({ results }: Checked, directory: string): string {
  const log = {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'archwright check',
            version: programVersion.version,
            rules: Object.entries(rules).map(([id, text]) => ({
              id,
              shortDescription: { text },
              defaultConfiguration: { level: levels[classes[id as CheckVerdict]] },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: results.filter(({ verdict }) => verdict !== 'ok').map((each) => resultOf(each, directory)),
      },
    ],
  };
  return jsonText(log);
}

function resultOf(result: Result, directory: string) {
  const { file, line, image, architecture, verdict, why, usedBy } = result;
  const workload = workloadOf(result);
  return {
    ruleId: verdict,
    ruleIndex: ids.indexOf(verdict),
    level: levels[classes[verdict]],
    message: { text: plainText(`${image} for ${architecture}: ${verdict}: ${why}`) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(file, directory) },
          region: { startLine: line },
        },
        logicalLocations: [{ fullyQualifiedName: `${workload}/${usedBy}`, kind: 'resource' }],
      },
    ],
    // Stays the same if lines are added above.
    partialFingerprints: { 'image/v1': `${workload}/${usedBy} ${image} ${architecture}` },
    ...(verdict === 'allowed' && { suppressions: [{ kind: 'external', justification: why }] }),
  };
}

/** Escapes placeholders (SARIF 2.1.0, section 3.11.5) and embedded links (3.11.6): names are untrusted. */
function plainText(text: string): string {
  return text.replaceAll(/[[\]\\]/g, String.raw`\$&`).replaceAll(/[{}]/g, '$&$&');
}

function uriOf(file: string, directory: string): string {
  if (file === standardInput) return 'stdin';
  const path = relative(directory, resolve(directory, file));
  const isBelow = path !== '..' && !path.startsWith(`..${sep}`);
  return isBelow
    ? path.split(sep).map(encodeURIComponent).join('/')
    : pathToFileURL(resolve(directory, file)).href;
}
