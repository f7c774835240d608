/** Writes the pictures of the docs: `npx node test/e2e/report/pictures.ts docs/images`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Cause } from '../../../cmd/report/verdict.ts';
import { judgedPod, pageOf, sampleMoney } from '../../cmd/report/judged-cluster.ts';
import { Browser, chromium } from './browser.ts';

type Line = readonly [
  namespace: string,
  name: string,
  pods: number,
  cpu: number,
  gib: number,
  image?: string | undefined,
  cause?: Cause,
];

const lines: readonly Line[] = [
  ['shop', 'web', 12, 1, 2],
  ['shop', 'cart', 6, 0.5, 1],
  ['shop', 'search', 5, 2, 8, 'registry.example.com/search:8.2', 'image'],
  ['shop', 'recommend', 4, 2, 4, 'registry.example.com/recommend:4.1', 'broken'],
  ['bank', 'ledger', 6, 2, 6, 'registry.example.com/ledger:3.9', 'image'],
  ['bank', 'statements', 3, 1, 2, 'registry.example.com/ledger:3.9', 'image'],
  ['bank', 'gateway', 8, 0.5, 1],
  ['media', 'encode', 10, 2, 3, undefined, 'selector'],
  ['media', 'thumbnails', 4, 0.5, 1],
  ['data', 'warehouse', 3, 4, 16, undefined, 'affinity'],
  ['data', 'loader', 2, 1, 4, 'registry.example.com/loader:nightly', 'unknown'],
  ['data', 'queue', 3, 1, 4],
];
const reasons: Readonly<Record<Cause, (image: string) => string>> = {
  image: (image) => `${image} has amd64`,
  broken: (image) => `${image} has amd64; its binaries for arm64 are not (exec format error)`,
  unknown: (image) => `${image}: unauthorized: the registry needs credentials`,
  selector: () => 'the pod requires amd64',
  affinity: () => 'the pod requires amd64',
};
const pods = lines.flatMap(([namespace, name, count, cpu, gib, image = '', cause]) =>
  Array.from({ length: count }, (_, index) =>
    judgedPod({
      namespace,
      name,
      cpu,
      memory: gib * 2 ** 30,
      node: 'a1',
      on: cause === undefined && index < 2 ? 'arm64' : 'amd64',
      ...(image !== '' && { image }),
      ...(cause && { blockers: [{ cause, ...(image !== '' && { image }) }], why: reasons[cause](image) }),
    }),
  ),
);

const [folder = '.'] = process.argv.slice(2);
if (chromium === undefined) throw new Error('no Chromium; apt-get install chromium');
const temporary = mkdtempSync(join(tmpdir(), 'archwright-picture-'));
const file = join(temporary, 'report.html');
writeFileSync(
  file,
  pageOf(pods, {
    lookups: 'through archwright/archwright-controller, with the credentials of its agents and of the pods',
    money: sampleMoney(),
  }),
);
const browser = await Browser.start(chromium);
const size = { width: 1200, height: 1290, deviceScaleFactor: 0.75, mobile: false };
await browser.send('Emulation.setDeviceMetricsOverride', size);
await browser.send('Emulation.setScrollbarsHidden', { hidden: true });
for (const scheme of ['light', 'dark']) {
  await browser.preferColorScheme(scheme);
  await browser.open(pathToFileURL(file).href);
  const { data } = await browser.send('Page.captureScreenshot', { format: 'png' });
  writeFileSync(join(folder, `report-${scheme}.png`), Buffer.from(String(data), 'base64'));
}
await browser.close();
rmSync(temporary, { recursive: true });
