/**
 * docs/operate/troubleshooting.md quotes the program's texts exactly, and has every event reason and error
 * code.
 */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { metricGroups } from '../../scripts/docs/metrics.ts';
import { page, pageOf, source, writtenPages, type Page } from './pages.ts';

const troubleshooting = page('docs/operate/troubleshooting.md');

/** Reasons of the program's events: names of two words in the files that record events. */
const eventReasons = new Set(
  globSync('src/**/*.ts')
    .map((file) => readFileSync(file, 'utf8'))
    .filter((text) => text.includes('events.record('))
    .flatMap((text) => [...text.matchAll(/'([A-Z][a-z]+(?:[A-Z][a-z]+)+)'/g)].map(([, name = '']) => name)),
);

/** Names of Kubernetes: kinds, states of pods and containers, event reasons. */
const othersNames =
  /^(?:[A-Z]\w*(?:Config|Configuration|Policy|Binding|Budget|Class|Set|Monitor|Rule|Map|Slices?|Account|Job)s?|SchedulingGated|ImagePullBackOff|ContainerCreating|CreateContainerConfigError|CreateContainerError|CrashLoopBackOff|FailedCreate)$/;

/** Texts of the API server, the scheduler, the kubelet, containers and Helm. */
const othersTexts = [
  'exists and cannot be imported into the current release',
  'admission webhook "pods.arch.example" denied the request: ',
  'failed calling webhook "pods.arch.example"',
  "didn't match Pod's node affinity/selector",
  "didn't have free ports",
  'hostPath type check failed',
  "ValidatingAdmissionPolicy 'archwright-own-pods'",
  'denied request: ',
  'is mounted on',
  'but it is not a shared or slave mount',
  'MountVolume.SetUp failed for volume "tls" : secret "archwright-agent-tls" not found',
  'Warning  ',
];

/** The parts of a quotation between placeholders (`…`, capitals, numbers, architectures) and punctuation. */
function pieces(quotation: string): string[] {
  const ours = othersTexts.reduce((text, other) => text.replaceAll(other, ''), quotation);
  return ours
    .split(/…|\b[A-Z][A-Z-]{2,}\b|\d+s?\b|\b(?:amd64|arm64)\b|: |[;,] | {2,}/)
    .map((piece) => piece.replaceAll(/^[\s,.:/]+|[\s,.:/]+$/g, ''))
    .filter((piece) => piece.length >= 6);
}

/** Quotations of the program: text blocks, italics, and code spans of several words. */
function quotations({ blocks, spans, text }: Page): string[] {
  const lines = blocks
    .filter(({ language }) => language === 'text')
    .flatMap(({ text }) => text.trim().split('\n'));
  const italics = [...text.matchAll(/(?<![*\w])\*([^*\n]+(?:\n[^*\n]+)?)\*(?![*\w])/g)].map(
    ([, words = '']) => words.replaceAll(/\s*\n\s*/g, ' '),
  );
  const sentences = spans.filter(
    (span) =>
      /^[a-z]\w*(?: [\w;:,'-]+){3,}$/.test(span) && !/^(?:kubectl|helm|npm|archwright [a-z]+ -)/.test(span),
  );
  return [...lines, ...[...italics, ...sentences].filter((words) => words.split(' ').length > 2)];
}

function unknownPieces(found: Page): string[] {
  return quotations(found)
    .flatMap(pieces)
    .filter((piece) => !source.includes(piece));
}

function unknownReasons({ spans }: Page): string[] {
  return spans.filter(
    (span) =>
      /^[A-Z][a-z]+(?:[A-Z][a-z]+)+$/.test(span) &&
      !eventReasons.has(span) &&
      !othersNames.test(span) &&
      !source.includes(`'${span}'`),
  );
}

t.test('quoted texts exist in the program', async (t) => {
  t.ok(quotations(troubleshooting).length > 30);
  t.strictSame(unknownPieces(troubleshooting), []);
});

t.test('event reasons named on the pages exist', async (t) => {
  for (const each of writtenPages.filter(({ path }) => !path.startsWith('docs/internals/decisions.md')))
    t.strictSame(unknownReasons(each), [], each.path);
});

t.test('every event reason and error code is on the page', async (t) => {
  const { text } = troubleshooting;
  t.ok(eventReasons.size >= 8, [...eventReasons].join(' '));
  for (const reason of eventReasons) t.ok(text.includes(reason), reason);
  const failures = metricGroups
    .flatMap(({ metrics }) => metrics)
    .find(({ name }) => name === 'archwright_facts_failures_total');
  const codes = failures?.labels?.['code'] ?? [];
  t.ok(codes.length > 8);
  for (const code of codes) t.ok(text.includes(`\`${code}\``), code);
});

t.test('every section is linked from the table at the top', async (t) => {
  const [top = '', ...rest] = troubleshooting.text.split(/^(?=## )/m);
  const linked = pageOf('top.md', top).links;
  t.ok(rest.length > 12);
  for (const anchor of pageOf('rest.md', rest.join('')).anchors) t.ok(linked.includes(`#${anchor}`), anchor);
});

t.test('the check finds unknown quotations', async (t) => {
  const cases: readonly (readonly [text: string, found: readonly string[]])[] = [
    [
      '```text\nWarning  ImageUnknown  Image platforms not heard of within … s; falling back to …\n```',
      ['Image platforms not heard of within'],
    ],
    ['```text\nWarning  ImageUnheard  …\n```', ['ImageUnheard']],
    ['it says *no agents\nare here; see archwright status*', ['no agents are here']],
    ['`nobody leads at all now`', ['nobody leads at all now']],
  ];
  for (const [text, found] of cases) t.strictSame(unknownPieces(pageOf('x.md', text)), found, text);
  t.strictSame(unknownReasons(pageOf('x.md', '`ImageUnknown`, `ImagePullBackOff`, `ImageUnheard`')), [
    'ImageUnheard',
  ]);
});
