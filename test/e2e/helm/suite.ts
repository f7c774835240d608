/** A suite in a box with a real node: builds our image, runs the box, and maps its report to the test. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { baseImage } from '../image/base.ts';
import { runInBox } from '../box/box.ts';
import { helmPrograms } from '../box/programs.ts';
import { cache } from '../programs/cache.ts';
import type { Line } from './report.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const kept = process.env['ARCHWRIGHT_E2E_KEEP'];

/** @param entry the program of the box; `IMAGE` is our image, as skopeo names it, in the folder `LAYOUT` */
export async function runSuite(
  t: Test,
  { entry, timeoutMs }: { readonly entry: URL; readonly timeoutMs: number },
): Promise<void> {
  const programs = helmPrograms();
  const started = performance.now();
  const images = join(cache, 'image');
  mkdirSync(images, { recursive: true });
  const folder = mkdtempSync(join(images, 'run-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const layout = join(folder, 'oci');
  execFileSync(
    process.execPath,
    ['scripts/image.ts', '--base', baseImage(), '--platform', 'amd64', '--output', layout],
    {
      cwd: project,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  t.comment(`our image: ${Math.round(performance.now() - started)} ms`);

  await runInBox(t, programs, {
    entry,
    env: {
      IMAGE: `oci:${layout}:0.1.0`,
      LAYOUT: layout,
      ...(kept !== undefined && { ARCHWRIGHT_E2E_KEEP: kept }),
    },
    timeoutMs,
    onLine: (text) => {
      const line = JSON.parse(text) as Line;
      if ('step' in line) t.equal(line.error, undefined, `${line.step} (${line.ms} ms)`);
      else if ('fact' in line) t.comment(line.fact);
      else if (kept === undefined) t.comment(`${line.log}:\n${line.text.slice(-3000)}`);
      else {
        mkdirSync(kept, { recursive: true });
        writeFileSync(join(kept, line.log), line.text);
      }
    },
  });
}
