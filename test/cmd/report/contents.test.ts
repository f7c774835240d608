/** What a report says of pods, and how it is written: names and messages from outside appear in spreadsheets and on terminals. */
import t from 'tap';
import { asCsv, asTable, documentOf } from '../../../cmd/report/contents.ts';
import { like } from '../../support/like.ts';
import { judgedPod, reportWith } from './judged-cluster.ts';
import { requestsOfPod } from '../../../cmd/report/pods.ts';
import { judgePod, type JudgedPod } from '../../../cmd/report/verdict.ts';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import {
  archIn,
  archLabel,
  betaArchLabel,
  isIn,
  notIn,
  onArch,
  requiring,
  termOf,
} from '../../support/placement-input.ts';

/** A pod with an unknown image. */
function judged(image: string, why: string, memory = 0): JudgedPod {
  const options = { name: image, image, kind: 'Pod', cpu: 0.1 + 0.2, memory, why };
  return judgedPod({ ...options, blockers: [{ cause: 'unknown', image }] });
}

const rowsIn = (csv: string): readonly string[] => csv.split('\r\n').slice(1, -1);

t.test('a CSV value stays one cell, and is no formula', async (t) => {
  const cases: [text: string, cell: string][] = [
    ['plain', 'plain'],
    ['a, b', '"a, b"'],
    ['say "no"', '"say ""no"""'],
    ['two\nlines', 'two?lines'],
    ['=HYPERLINK("http://evil")', `"'=HYPERLINK(""http://evil"")"`],
    ['\t=1', '?=1'],
    ['a=b', 'a=b'],
    ['x;=HYPERLINK(1);-1', "x;'=HYPERLINK(1);'-1"],
    ['a; =1', "a; '=1"],
    ...['+', '-', '@', '＝', '＋', '－', '＠'].map((sign) => [`${sign}1`, `'${sign}1`] as [string, string]),
    ['＋1;－1; ＠1', "'＋1;'－1; '＠1"],
    ['a; b-1', 'a; b-1'],
    [`;${' '.repeat(300)}=1`, `;${' '.repeat(300)}'=1`],
    ['x'.repeat(513), `${'x'.repeat(509)}...`],
  ];
  for (const [text, cell] of cases) {
    const report = reportWith([judged('app', text)]);
    const about = text.slice(0, 40);
    t.strictSame(rowsIn(asCsv(report, 'workload')), [`shop,Pod,app,1,,,0.3,0,unknown,${cell}`], about);
    t.strictSame(rowsIn(asCsv(report, 'image')), [`app,1,1,1,0.3,0,unknown,,${cell}`], about);
  }
});

t.test('numbers are formatted for people in tables, and for programs in JSON and CSV', async (t) => {
  const cases: [bytes: number, text: string][] = [
    [0, '0'],
    [1023, '1023'],
    [1024, '1Ki'],
    [1536 * 1024, '1.5Mi'],
    [9.96 * 2 ** 30, '10Gi'],
    [5000 * 2 ** 50, '5000Pi'],
  ];
  for (const [bytes, text] of cases) {
    const report = reportWith([judged('app', 'x', bytes)]);
    const all = asTable(report, 'workload').split('\n')[5];
    like(t, all?.trim().split(/\s+/), ['all', '1', '1', '0', '0.3', text]);
    like(t, documentOf(report), { totals: { all: { cpu: 0.3, memory: bytes } } });
  }
});

t.test('the formats of tables and CSV', async (t) => {
  const old = judgedPod({
    name: 'old',
    cpu: 0.5,
    on: 'arm64',
    blockers: [{ cause: 'image', image: 'registry.example.com/old:1' }],
    why: 'old:1 has amd64',
  });
  const report = reportWith([judgedPod({ name: 'web', cpu: 0.5, on: 'amd64' }), old], { lookups: 'here' });
  t.equal(
    asTable(report, 'workload'),
    [
      'ARM64    WORKLOADS  PODS  THERE  CPU  MEMORY',
      'yes      1          1     0      0.5  1Gi',
      'pinned   0          0     0      0    0',
      'no       1          1     1      0.5  1Gi',
      'unknown  0          0     0      0    0',
      'all      2          2     1      1    2Gi',
      '',
      'NAMESPACE  WORKLOAD        PODS  DECIDED  ON     CPU  MEMORY  ARM64  WHY',
      'shop       Deployment/web  1     -        amd64  0.5  1Gi     yes    -',
      'shop       Deployment/old  1     -        arm64  0.5  1Gi     no     old:1 has amd64',
      '',
      'Images: looked up here.',
      '',
    ].join('\n'),
  );
  t.match(
    asTable(report, 'image'),
    /\nIMAGE +NAMESPACES +WORKLOADS +PODS +CPU +MEMORY +ARM64 +ARCHITECTURES +WHY\n\S+\/web:1 +1 +1 +1 +0\.5 +1Gi +yes +amd64 arm64 +-\n/,
  );
  const [head] = asCsv(report, 'workload').split('\r\n');
  t.equal(head, 'namespace,kind,name,pods,decided,on,cpu,memory,arm64,why');
  const [imageHead, row] = asCsv(report, 'image').split('\r\n');
  t.equal(imageHead, 'image,namespaces,workloads,pods,cpu,memory,arm64,architectures,why');
  t.equal(row, 'registry.example.com/web:1,1,1,1,0.5,1073741824,yes,amd64 arm64,');
});

t.test('names are bounded and printable on a terminal', async (t) => {
  const text = asTable(reportWith([judged(`a\u001B[31m\n${'b'.repeat(5000)}`, 'x')]), 'image');
  t.notOk(text.includes('\u001B'));
  t.ok(text.length < 2000);
});

/** @param text CPU and memory, `-` for none, and the restart policy */
function container(text: string): object {
  const [cpu = '-', memory = '-', restartPolicy] = text.split(' ');
  const requests = { ...(cpu !== '-' && { cpu }), ...(memory !== '-' && { memory }) };
  return { name: 'c', ...(restartPolicy !== undefined && { restartPolicy }), resources: { requests } };
}

t.test("a pod's requests are counted like the scheduler's", async (t) => {
  const ofPod = { resources: { requests: { cpu: '7' } } };
  const rows: [about: string, init: string[], containers: string[], expected: string, more?: object][] = [
    ['nothing', [], [''], '0 0'],
    ['containers together', [], ['500m 1Ki', '1 2Ki'], '1.5 3072'],
    ['an invalid quantity', [], ['lots 1Ki'], '0 1024'],
    ['an init container that requests more CPU than all later ones', ['4 1Ki'], ['1 2Ki'], '4 2048'],
    ['sequential init containers', ['2', '3'], ['1'], '3 0'],
    ['a sidecar beside the containers', ['1 1Ki Always'], ['1 1Ki'], '2 2048'],
    ['an init container beside the sidecars before it', ['1 - Always', '5', '2 - Always'], ['1'], '6 0'],
    ['an init container before the sidecar', ['5', '1 - Always'], ['1'], '5 0'],
    ['requests of the pod take precedence, per resource', [], ['1 1Ki'], '7 1024', ofPod],
    ['overhead', [], ['1'], '1.25 1024', { overhead: { cpu: '250m', memory: '1Ki' } }],
  ];
  for (const [about, init, containers, expected, more] of rows) {
    const spec = { initContainers: init.map(container), containers: containers.map(container), ...more };
    const { cpu, memory } = requestsOfPod(spec as unknown as PodSpec);
    t.equal(`${cpu} ${memory}`, expected, about);
  }
  t.strictSame(requestsOfPod({} as PodSpec), { cpu: 0, memory: 0 }, 'no containers');
});

const requires = (architecture: string) => requiring(termOf(archIn(architecture)));

t.test('a pod has all of its blockers, the most important first', async (t) => {
  const images = {
    yes: { image: 'both:1', state: 'ready', verdict: 'yes', why: '' },
    cached: { image: 'both:1', state: 'ready', verdict: 'yes', why: 'from the cache' },
    no: { image: 'old:1', state: 'image', verdict: 'no', why: 'x' },
    broken: { image: 'bad:1', state: 'broken', verdict: 'no', why: 'y' },
    unknown: { image: 'gone:1', state: 'unknown', verdict: 'unknown', why: 'z' },
  } as const;
  const amd64 = 'pinned (the pod requires amd64)';
  const twoLabels = { nodeSelector: { [archLabel]: 'arm64', [betaArchLabel]: 'amd64' } };
  const excludes = 'pinned (the pod excludes arm64 by its affinity)';
  const cases: [Partial<PodSpec>, (keyof typeof images)[], verdict: string, ...blockers: string[]][] = [
    [{}, ['yes'], 'yes ()'],
    [{}, ['cached'], 'yes (both:1: from the cache)'],
    [onArch('arm64'), ['yes'], 'yes ()'],
    [onArch('amd64'), ['yes'], amd64, 'selector'],
    [requires('amd64'), ['yes'], amd64, 'affinity'],
    [requires('arm64'), ['yes'], 'yes ()'],
    [{ ...onArch('amd64'), ...requires('amd64') }, ['yes'], amd64, 'selector'],
    [{ ...onArch('arm64'), ...requires('amd64') }, ['yes'], amd64, 'affinity'],
    [twoLabels, ['yes'], 'pinned (the pod requires an architecture that does not exist)', 'selector'],
    [requiring(termOf(notIn(archLabel, 'arm64'))), ['yes'], excludes, 'affinity'],
    [requiring(termOf(notIn(archLabel, 'arm64')), termOf(isIn('zone', 'a'))), ['yes'], 'yes ()'],
    [{}, ['yes', 'broken', 'no'], 'no (bad:1 y; old:1 x)', 'image old:1', 'broken bad:1'],
    [requires('amd64'), ['unknown', 'no'], 'no (old:1 x)', 'image old:1', 'unknown gone:1', 'affinity'],
  ];
  for (const [spec, names, ...expected] of cases) {
    const { pod } = judgedPod({ name: 'a' });
    const made = { ...pod.made, pod: { spec: { containers: [], ...spec } } };
    const judgedImages = names.map((name) => images[name]);
    const { verdict, why, blockers } = judgePod({ ...pod, made }, {}, judgedImages, 'arm64');
    const texts = blockers.map(({ cause, image = '' }) => `${cause} ${image}`.trim());
    t.strictSame([`${verdict} (${why})`, ...texts], expected);
  }
});
