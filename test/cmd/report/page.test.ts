/** The page of `archwright report --html`. `npm run e2e:report` opens it in a browser. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import type { Blocker } from '../../../cmd/report/verdict.ts';
import { firstChanges } from '../../../cmd/report/page/changes.ts';
import { percent, type PageData } from '../../../cmd/report/page/data.ts';
import { judgedPod, largeCluster, pageOf } from './judged-cluster.ts';
import { putPod, shop, startCluster } from './cluster.ts';
import { directory } from '../world.ts';
import { like } from '../../support/like.ts';

/** Its elements with the names of their attributes, by a strict parser: attributes are quoted, text has no bare marks. */
function structureOf(page: string): readonly string[] {
  const tag = /<(\/?[a-z][a-z0-9]*)((?:\s+[a-zA-Z-]+(?:="(?:[^"<>&]|&#\d+;)*")?)*)\s*\/?>/y;
  const text = /(?:[^<>&]|&#\d+;)+/y;
  const structure: string[] = [];
  let at = '<!doctype html>'.length;
  while (at < page.length) {
    const isTag = page[at] === '<';
    const token = isTag ? tag : text;
    token.lastIndex = at;
    const [whole = '', name = '', attributes = ''] = token.exec(page) ?? [];
    if (whole === '') throw new Error(`not strict: ${page.slice(at, at + 80)}`);
    at += whole.length;
    if (!isTag) continue;
    structure.push(name + attributes.replaceAll(/="[^"]*"/g, ''));
    if (name === 'script' || name === 'style') at = page.indexOf(`</${name}`, at);
  }
  return structure;
}

/** What a screen reader reads. */
function textOf(page: string): string {
  return page.replaceAll(/<script.*?<\/script>|<style.*?<\/style>|<[^>]*>/gs, ' ').replaceAll(/\s+/g, ' ');
}

function dataIn(page: string): PageData {
  const [, json = ''] = /<script type="application\/json" id="data">([^<]*)<\/script>/.exec(page) ?? [];
  return JSON.parse(json) as PageData;
}

const old: Blocker = { cause: 'image', image: 'old:1' };
const gone: Blocker = { cause: 'unknown', image: 'gone:1' };
const selector: Blocker = { cause: 'selector' };
/** 10 pods with 20 cores and 40 GiB. */
const small = [
  judgedPod({ name: 'web', cpu: 4, memory: 8 * 2 ** 30 }),
  judgedPod({ name: 'web', cpu: 4, memory: 8 * 2 ** 30, on: 'arm64' }),
  ...Array.from({ length: 3 }, () => judgedPod({ name: 'db', image: 'old:1', cpu: 2, blockers: [old] })),
  judgedPod({ name: 'job', image: 'old:1', cpu: 3, blockers: [old, selector], memory: 4 * 2 ** 30 }),
  ...Array.from({ length: 4 }, () =>
    judgedPod({ name: 'gone', image: 'gone:1', cpu: 0.75, blockers: [gone] }),
  ),
];

t.test('a part is never rounded to all or to nothing', async (t) => {
  const texts = [0, 0.001, 0.404, 0.999, 1].map(percent);
  t.strictSame(texts, ['0 %', '< 1 %', '40 %', '> 99 %', '100 %']);
});

t.test('with all changes, all of the CPU requests are reached', async (t) => {
  const [a, b] = [judgedPod({ name: 'a', cpu: 0.1 }), judgedPod({ name: 'b', cpu: 0.2 })];
  const c = judgedPod({ name: 'c', image: 'old:1', cpu: 0.6, blockers: [old] });
  t.match(textOf(pageOf([a, b, c])), / old:1 1 1 0\.6 1Gi 100 % /);
});

t.test('the changes with the greatest effect come first', async (t) => {
  const steps = firstChanges(small).map(({ cause, subject, gain, blocked }) => [
    `${cause} ${subject}`,
    blocked,
    gain.pods,
    gain.cpu,
  ]);
  t.strictSame(steps, [
    // Then three pods of db can run; job still has its node selector.
    ['image old:1', 4, 3, 6],
    ['unknown gone:1', 4, 4, 3],
    ['selector shop/Deployment/job', 1, 1, 3],
  ]);
  t.strictSame(firstChanges(largeCluster(2000)).length, 10, 'at most ten');
  t.strictSame(firstChanges([]), []);
});

t.test('changes without effect of their own come with those that they need', async (t) => {
  const shared: Blocker = { cause: 'image', image: 'shared:1' };
  const own: Blocker = { cause: 'image', image: 'own:1' };
  const pods = [
    // Each of a hundred pods needs the shared image, and its own pin removed: 101 changes.
    ...Array.from({ length: 100 }, (_, index) =>
      judgedPod({ name: `p${index}`, blockers: [shared, selector] }),
    ),
    ...Array.from({ length: 40 }, () => judgedPod({ name: 'web', blockers: [own] })),
    ...Array.from({ length: 90 }, () => judgedPod({ name: 'db', blockers: [old, selector] })),
  ];
  const steps = firstChanges(pods).map(({ subject, gain, blocked }) => [subject, gain.pods, blocked]);
  t.strictSame(steps.slice(0, 5), [
    // 45 pods per change for two changes, then 40 for one.
    ['old:1', 0, 90],
    ['shop/Deployment/db', 90, 90],
    ['own:1', 40, 40],
    ['shared:1', 0, 100],
    ['shop/Deployment/p0', 1, 1],
  ]);
  t.equal(steps.length, 10);
  const many = Array.from({ length: 11 }, (_, index) => ({ cause: 'image', image: `i:${index}` }) as const);
  t.strictSame(
    firstChanges([judgedPod({ name: 'a', blockers: many })]),
    [],
    'ten changes would have no effect',
  );
});

t.test('the page needs no network, and runs only its own script', async (t) => {
  const page = pageOf(small);
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? [];
  const hash = (text = ''): string =>
    `&#39;sha256-${createHash('sha256').update(text).digest('base64')}&#39;`;
  const [, style] = /<style>(.*?)<\/style>/s.exec(page) ?? [];
  const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)].map(([, text]) => text);
  t.equal(scripts.length, 1);
  t.ok(policy.startsWith('default-src &#39;none&#39;; '), policy);
  t.ok(policy.includes(`script-src ${hash(scripts[0])};`), 'the hash of the script');
  t.ok(policy.includes(`style-src ${hash(style)};`), 'the hash of the style');
  t.notMatch(page, /\son[a-z]+=|\sstyle=|javascript:|@import|url\(/i);
  const addresses = [...page.matchAll(/\s(?:src|href|action|data)="([^"]*)"/g)].map(([, address]) => address);
  t.strictSame(addresses, ['data:,', '#table']);
});

t.test('names from the cluster are escaped', async (t) => {
  const attacks = [
    '</script><script>alert(1)</script>',
    '<!--<script>',
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '${alert(1)}',
    '\u202Egnp.exe',
  ];
  const pageWith = (name: string): string => {
    const blockers: readonly Blocker[] = [{ cause: 'image', image: name }, { cause: 'selector' }];
    const names = { namespace: name, kind: name, image: name, on: name };
    const newerTags = { byImage: new Map([[name, `${name}.1`]]), problems: [name] };
    return pageOf([judgedPod({ name, ...names, blockers, why: name })], { newerTags, namespaces: [name] });
  };
  const structure = structureOf(pageWith('web'));
  for (const attack of attacks) {
    const page = pageWith(attack);
    t.strictSame(structureOf(page), structure, `${attack}: the same elements and attributes`);
    t.notOk(page.includes('\u202E'), attack);
    const shown = attack.replace('\u202E', '?');
    const [workloads, namespaces, images] = dataIn(page).tables;
    t.strictSame(workloads?.rows[0]?.slice(0, 2), [shown, `${shown}/${shown}`]);
    t.equal(namespaces?.rows[0]?.[0], shown);
    t.equal(images?.rows[0]?.[0], shown);
  }
});

t.test('rows are grouped by workload, namespace and image, blocked ones first', async (t) => {
  const [workloads, namespaces, images] = dataIn(pageOf(small)).tables;
  const gib = 2 ** 30;
  t.strictSame(workloads?.rows, [
    ['shop', 'Deployment/db', 3, '', '', 6, 3 * gib, ['image'], ''],
    ['shop', 'Deployment/job', 1, '', '', 3, 4 * gib, ['image', 'selector'], ''],
    ['shop', 'Deployment/gone', 4, '', '', 3, 4 * gib, ['unknown'], ''],
    ['shop', 'Deployment/web', 2, '', 'arm64', 8, 16 * gib, ['ready'], ''],
  ]);
  const all = ['ready', 'image', 'unknown', 'selector'];
  t.strictSame(namespaces?.rows, [['shop', 4, 10, 0.2, 20, 0.4, 27 * gib, 16 / 27, all]]);
  const found = images?.rows.map(([image, , , pods, , , causes]) => [image, pods, causes]);
  t.strictSame(found, [
    ['old:1', 4, ['image']],
    ['gone:1', 4, ['unknown']],
    ['registry.example.com/web:1', 2, ['ready']],
  ]);
});

t.test('each pod counts once, for its main blocker', async (t) => {
  const text = textOf(pageOf(small));
  t.match(
    text,
    /20 % of the pods 40 % of the CPU requests 59 % of the memory requests 1 of 10 pods run on arm64/,
  );
  t.match(text, / can run 2 20 % 8 40 % 16Gi 59 % .* image lacks it 4 40 % 9 45 % 7Gi 26 % /);
  t.match(text, / image is unknown 4 40 % 3 15 % 4Gi 15 % The image could not .* What to change first /);
  t.match(text, /some steps bring nothing before the next one\. An unknown image counts as if it had the/);
});

t.test('--html writes the page', async (t) => {
  const open = await shop(t);
  const { store, report } = await startCluster(t);
  putPod(store, 'shop/web', [`${open.host}/both:1`]);
  const folder = directory(t);
  const file = `${folder}/report.html`;

  const written = await report('--html', file);
  like(t, written, { code: 0, out: '', err: `archwright report: ${file} written\n` });
  const page = readFileSync(file, 'utf8');
  const [row, ...more] = dataIn(page).tables[0]?.rows ?? [];
  t.strictSame(row?.slice(0, 3), ['shop', 'Pod/web', 1]);
  t.strictSame(more, []);
  t.match(page, /all namespaces, archwright 0\.1\.0\. Images: looked up from this machine/);

  const piped = await report('--html', '-', '-n', 'shop');
  t.match(piped.out, /^<!doctype html>\n[^]*, namespaces shop, archwright/);
  t.equal(piped.err, '');

  const lookups = open.requests.length;
  for (const [args, message] of [
    [['--html', `${folder}/read/report.html`], new RegExp(`--html: ${folder}/read: there is no such`)],
    [['--html', file, '-o', 'json'], /--html and --output exclude each other/],
  ] as const) {
    like(t, await report(...args), { code: 2, err: message });
  }
  t.equal(open.requests.length, lookups, 'the error comes before lookups');
  const into = await report('--html', folder);
  like(t, into, { code: 2, err: /--html: .*is not a regular file/ });
});

t.test('progress is shown on a terminal', async (t) => {
  const open = await shop(t);
  const { store, reportWith } = await startCluster(t);
  for (const name of ['a', 'b'])
    putPod(store, `shop/${name}`, [`${open.host}/both:1`], { spec: { nodeSelector: { name } } });
  for (let count = 0; count < 500; count++) putPod(store, `shop/alike-${count}`, [`${open.host}/both:1`]);
  const { err } = await reportWith({ isErrTerminal: true });
  const lines = err.split('\r').map((line) => line.replaceAll('\u001B[2K', ''));
  const images = [1, 2, 3].map((count) => `images of ${count} of 3 kinds of pods`);
  t.strictSame(lines, ['reading pods', 'reading pods: 500', 'reading workloads', ...images, '']);
});
