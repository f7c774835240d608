/**
 * docs/operate/troubleshooting.md quotes the program's texts exactly, and has every event reason and error
 * code. docs/use/explain.md shows what the program prints.
 */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { metricGroups } from '../../scripts/docs/metrics.ts';
import { run } from '../cmd/run.ts';
import { files, registry } from '../cmd/world.ts';
import { image, multiArch } from '../support/registry/content.ts';
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

t.test('docs/use/explain.md: a Deployment and the decision for its pods', async (t) => {
  const mirror = await registry(t, { tls: false });
  const push = (name: string, content: ReturnType<typeof image>) =>
    mirror.push(name, name === 'shop/web' ? '3' : '1', content, 'registry.example.com');
  push('shop/web', multiArch(['linux/amd64', 'linux/arm64']));
  push('team/log-shipper', image('linux/amd64'));
  const { blocks } = page('docs/use/explain.md');
  const textOf = (language: string) => blocks.find((block) => block.language === language)?.text ?? '';
  const { config, 'deployment.yaml': file } = files(t, {
    config: 'preferredArchitecture = "arm64"\n',
    'deployment.yaml': textOf('yaml'),
  });
  const { out, code } = await run([
    'explain',
    '--local',
    `--config=${config}`,
    `--proxies=registry.example.com=${mirror.url}`,
    '--docker-config=',
    `--filename=${file}`,
  ]);
  t.equal(code, 0);
  const shown = out.replaceAll(mirror.host, 'registry.example.com').replace(file, 'deployment.yaml');
  t.equal(shown.trim(), textOf('text').trim());
});
