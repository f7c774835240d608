/** `archwright report --html` in a real browser. Skipped without Chromium (`apt-get install chromium`). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { judgedPod, largeCluster, pageOf, sampleMoney } from '../../cmd/report/judged-cluster.ts';
import { Browser, chromium } from './browser.ts';
import { column, focused, lowContrast, sortedBy, status, type Focused, type LowContrast } from './in-page.ts';
import { like } from '../../support/like.ts';

const skip = chromium === undefined ? 'no Chromium; apt-get install chromium' : false;
const workloads = 5000;
const hostile = '</script><img src=https://evil.example/x onerror=alert(1)>';

let browser: Browser;
let url = '';
/** A smaller page with everything that is optional: prices and newer tags. */
let fullUrl = '';

function fullPage(): string {
  const pods = largeCluster(200).map((each) => ({ ...each, on: 'amd64', pod: { ...each.pod, node: 'a1' } }));
  const images = pods.flatMap(({ blockers }) => blockers.map(({ image = '' }) => image)).filter(Boolean);
  const newerTags = {
    byImage: new Map(images.map((image) => [image, `${image}.9-bookworm-slim`])),
    problems: ['registry.example.com/app has more than the 10000 tags that were listed'],
  };
  return pageOf(pods, { newerTags, money: sampleMoney() });
}

t.before(async () => {
  if (chromium === undefined) return;
  const folder = mkdtempSync(join(tmpdir(), 'archwright-page-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'report.html');
  const pods = [
    ...largeCluster(workloads - 1),
    judgedPod({
      namespace: 'hostile',
      name: hostile,
      image: hostile,
      blockers: [{ cause: 'image', image: hostile }],
      why: hostile,
    }),
  ];
  writeFileSync(file, pageOf(pods));
  url = pathToFileURL(file).href;
  const full = join(folder, 'full.html');
  writeFileSync(full, fullPage());
  fullUrl = pathToFileURL(full).href;
  browser = await Browser.start(chromium);
  t.teardown(() => browser.close());
});

/** Sets a form field as a user does. */
async function setField(id: string, value: string): Promise<void> {
  await browser.evaluate(`(() => {
    const field = document.querySelector('#${id}');
    field.value = '${value}';
    field.dispatchEvent(new Event(field.matches('input') ? 'input' : 'change'));
  })()`);
}

async function fresh(page = url): Promise<void> {
  await browser.send('Emulation.setEmulatedMedia', { features: [] });
  await browser.open(page);
}

t.test('a page of 5,000 workloads opens in under 2 s, without errors and requests', { skip }, async (t) => {
  const times: number[] = [];
  // Other programs use this machine too: the best of three counts.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await fresh();
    const shown =
      'new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))';
    times.push(await browser.evaluate<number>(shown));
  }
  const best = Math.min(...times);
  t.comment(`opened in ${Math.round(best)} ms`);
  t.ok(best < 2000, `opened in ${best} ms`);
  t.equal(await browser.evaluate(status), 'Rows 1 to 100 of 5,000');
  await setField('search', 'evil');
  t.strictSame(await browser.evaluate(column(1)), [`Deployment/${hostile}`], 'a hostile name is text');
  t.equal(await browser.evaluate(`document.querySelectorAll('img').length`), 0);
  const problems = browser.events.filter(({ method }) =>
    /^(?:Runtime\.(?:console|exception)|Log\.entryAdded|Page\.javascriptDialog)/.test(method),
  );
  t.strictSame(problems, []);
  const requests = browser.events
    .filter(({ method }) => method === 'Network.requestWillBeSent')
    .map(({ params }) => (params['request'] as { url: string }).url)
    .filter((each) => each !== url && each !== 'data:,');
  t.strictSame(requests, []);
});

t.test('injected content cannot send requests', { skip }, async (t) => {
  await fresh();
  const refused = await browser.evaluate<readonly string[]>(`Promise.all([
    fetch('https://evil.example/').then(() => 'sent', () => 'refused'),
    new Promise((done) => { const image = new Image(); image.onload = () => done('sent'); image.onerror = () => done('refused'); image.src = 'https://evil.example/x.png'; }),
    new Promise((done) => { document.addEventListener('securitypolicyviolation', () => done('refused')); const script = document.createElement('script'); script.append('window.ran = true'); document.body.append(script); }).catch(() => 'refused'),
  ])`);
  t.strictSame(refused, ['refused', 'refused', 'refused']);
  t.equal(await browser.evaluate('window.ran'), undefined);
});

t.test('tables are sorted, also by keyboard, and the order is announced', { skip }, async (t) => {
  await fresh();
  await browser.evaluate(`document.querySelectorAll('#table th button')[5].focus()`);
  await browser.press('Enter');
  t.strictSame(await browser.evaluate(sortedBy), { CPU: 'descending' });
  const numbers = (await browser.evaluate<readonly string[]>(column(5))).map(Number);
  t.strictSame(
    numbers,
    numbers.toSorted((a, b) => b - a),
  );
  t.equal(numbers[0], 11.55);
  await browser.press(' ');
  t.strictSame(await browser.evaluate(sortedBy), { CPU: 'ascending' });
  const first = (await browser.evaluate<readonly string[]>(column(5))).map(Number);
  t.strictSame(
    first,
    first.toSorted((a, b) => a - b),
  );
  t.equal(await browser.evaluate(`document.activeElement.textContent`), 'CPU', 'the focus stays');
  await browser.evaluate(`document.querySelectorAll('#table th button')[1].click()`);
  t.strictSame(await browser.evaluate(sortedBy), { Workload: 'ascending' });
  const names = (await browser.evaluate<readonly string[]>(column(1))).slice(0, 4);
  t.strictSame(
    names.slice(1),
    ['Deployment/service-0', 'Deployment/service-1', 'Deployment/service-2'],
    '2 before 10',
  );
});

t.test('tables can be searched, filtered and paged', { skip }, async (t) => {
  await fresh();
  await browser.evaluate(`document.querySelector('#search').focus()`);
  await browser.send('Input.insertText', { text: 'TEAM-7 service-47' });
  const found = await browser.evaluate<readonly string[]>(
    `[...document.querySelectorAll('#table tbody tr')].map((row) => row.textContent)`,
  );
  t.ok(found.length > 0 && found.length < 100);
  t.ok(found.every((text) => text.includes('team-7') && text.includes('service-47')));
  await setField('search', 'Node Affinity');
  const affine = await browser.evaluate<readonly string[]>(column(7));
  t.ok(affine.length > 50 && affine.every((text) => text === 'node affinity'), 'a state as it is shown');
  await setField('search', '');
  await setField('filter', 'affinity');
  const states = await browser.evaluate<readonly string[]>(column(7));
  t.ok(states.length > 50 && states.every((text) => text === 'node affinity'));
  await setField('filter', '');
  await browser.evaluate(`document.querySelectorAll('.pages button')[1].click()`);
  t.equal(await browser.evaluate(status), 'Rows 101 to 200 of 5,000');
  await browser.evaluate(`document.querySelector('#by-workloads').focus()`);
  await browser.press('ArrowRight');
  t.match(await browser.evaluate(status), /^Rows 1 to 41 of 41$/, 'namespaces');
  t.equal(
    await browser.evaluate(`document.querySelector('#table table').tHead.textContent`),
    'NamespaceWorkloadsPodsPods that can runCPUCPU that can runMemoryMemory that can runState',
  );
});

t.test('every control is reachable by keyboard, with visible focus', { skip }, async (t) => {
  await fresh();
  const seen: Focused[] = [];
  for (let step = 0; step < 24; step += 1) {
    await browser.press('Tab');
    seen.push(await browser.evaluate<Focused>(focused));
  }
  const names = seen.map(({ name }) => name);
  t.equal(names[0], 'Skip to the table');
  for (const name of 'by-workloads search filter Namespace Workload CPU State Why Next'.split(' '))
    t.ok(names.includes(name), `${name} of ${names.join(', ')}`);
  t.strictSame(
    seen.filter(({ isVisible }) => !isVisible),
    [],
  );
  await fresh();
  await browser.press('Tab');
  await browser.press('Enter');
  t.equal(await browser.evaluate('document.activeElement.id'), 'table', 'the skip link skips');
});

t.test('a screen reader has names, headers and regions', { skip }, async (t) => {
  await fresh();
  interface Node {
    readonly ignored: boolean;
    readonly role?: { readonly value: string };
    readonly name?: { readonly value: string };
  }
  const { nodes } = (await browser.send('Accessibility.getFullAXTree')) as { nodes: readonly Node[] };
  const shown = nodes
    .filter(({ ignored }) => !ignored)
    .map(({ role, name }) => [role?.value, name?.value ?? ''] as const);
  const named = /^(?:button|searchbox|combobox|radio|region|heading|link|navigation|columnheader|rowheader)$/;
  t.strictSame(
    shown.filter(([role = '', name]) => named.test(role) && name.trim() === ''),
    [],
  );
  const names = new Set(shown.map((each) => each.join(' ')));
  for (const expected of [
    'heading What can run on arm64 today',
    'searchbox Search',
    'combobox State',
    'radio Workloads',
    'columnheader Namespace',
    'navigation Pages of the table',
  ])
    t.ok(names.has(expected), expected);
  t.equal(await browser.evaluate(`document.querySelectorAll('th:not([scope])').length`), 0);
  t.equal(await browser.evaluate(`document.documentElement.lang`), 'en');
});

async function assertContrast(t: Test, name: string): Promise<void> {
  t.strictSame(await browser.evaluate<LowContrast>(lowContrast), [], `contrast: ${name}`);
}

const background = 'getComputedStyle(document.documentElement).backgroundColor';
const light = 'rgb(255, 255, 255)';
const dark = 'rgb(20, 24, 29)';

t.test('light and dark follow the system, with contrast AA', { skip }, async (t) => {
  await fresh();
  for (const [scheme, color] of [
    ['light', light],
    ['dark', dark],
  ] as const) {
    await browser.preferColorScheme(scheme);
    t.equal(await browser.evaluate(background), color);
    await assertContrast(t, scheme);
  }
  await browser.evaluate(`document.querySelector('footer p').style.color = '#666'`);
  const found = await browser.evaluate<LowContrast>(lowContrast);
  like(t, found, [{ text: /^CPU and memory are/, ratio: Number }], 'the check finds low contrast');
  await browser.send('Emulation.setEmulatedMedia', { media: 'print' });
  t.equal(await browser.evaluate(background), light, 'the printed page is light');
});

t.test('a printed page has every row', { skip }, async (t) => {
  await fresh();
  const rows = `document.querySelectorAll('#table tbody tr').length`;
  t.equal(await browser.evaluate(`dispatchEvent(new Event('beforeprint')), ${rows}`), workloads);
  t.equal(await browser.evaluate(`dispatchEvent(new Event('afterprint')), ${rows}`), 100);
});

async function withWidth(width: number): Promise<void> {
  const size = { width, height: 800, deviceScaleFactor: 1, mobile: true };
  await browser.send('Emulation.setDeviceMetricsOverride', size);
}

t.test('a narrow screen needs no horizontal scrolling', { skip }, async (t) => {
  await withWidth(360);
  for (const page of [url, fullUrl]) {
    await fresh(page);
    t.equal(await browser.evaluate('document.documentElement.scrollWidth'), 360);
  }
  await browser.send('Emulation.clearDeviceMetricsOverride');
});

t.test(
  'with prices and newer tags, contrast and names pass too, and the page fits A4',
  { skip },
  async (t) => {
    await fresh(fullUrl);
    t.match(await browser.evaluate(`document.body.innerText`), /What moving them saves per month/);
    t.match(
      await browser.evaluate(`document.body.innerText`),
      /Newer tags: registry\.example\.com\/app has more than the 10000 tags/,
    );
    for (const value of ['light', 'dark']) {
      await browser.preferColorScheme(value);
      await assertContrast(t, value);
    }
    t.equal(await browser.evaluate(`document.querySelectorAll('th:not([scope])').length`), 0);
    // 210 mm without margins of 10 mm, at 96 pixels per inch.
    await withWidth(718);
    await browser.send('Emulation.setEmulatedMedia', { media: 'print', features: [] });
    for (const rows of ['workloads', 'namespaces', 'images']) {
      await browser.evaluate(`document.querySelector('#by-${rows}').click()`);
      t.equal(await browser.evaluate('document.documentElement.scrollWidth'), 718, rows);
    }
    await browser.send('Emulation.clearDeviceMetricsOverride');
  },
);
