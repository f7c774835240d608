/**
 * The chart in a cluster with a real node, installed by Helm 4 and Helm 3, and the plain manifests by kubectl. Our image is built, pushed to
 * a registry, pulled by a kubelet and run by containerd. The API server calls the webhook, the webhook an agent, and the agent the
 * node's credential provider plugin and the registries. Everything runs in a box (`../box/box.ts`).
 *
 *   E2E_CONTAINERD=1.7     containerd of the node. Default: 2.
 *   ARCHWRIGHT_E2E_KEEP    folder for the logs. Default: the ends of the logs are printed after a failure.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { runInBox } from '../box/box.ts';
import { helmPrograms } from '../box/programs.ts';
import { cache } from '../programs/cache.ts';
import type { Line } from './report.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const kept = process.env['ARCHWRIGHT_E2E_KEEP'];

/** Some eight minutes on two cores; a machine that does other things as well gets more. */
const timeoutMs = 20 * 60_000;

void t.test('the chart in a cluster with a real node', { timeout: timeoutMs + 120_000 }, async (t) => {
  const programs = helmPrograms();
  const started = performance.now();
  const layout = join(cache, 'image', 'oci');
  execFileSync(process.execPath, ['scripts/image/main.ts', '--platform', 'amd64', '--output', layout], {
    cwd: project,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.comment(`our image: ${Math.round(performance.now() - started)} ms`);

  await runInBox(t, programs, {
    entry: new URL('inside.ts', import.meta.url),
    env: { IMAGE: `oci:${layout}:0.1.0`, ...(kept !== undefined && { ARCHWRIGHT_E2E_KEEP: kept }) },
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
});
