/** Floods of data: registries with documents of the largest size, and a rogue agent at warm-up. */
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { factsOf } from '../../support/facts.ts';
import { createPki, startScripted } from '../../fleet/support.ts';
import { until } from '../../support/until.ts';
import { sized } from '../../support/exhaustive.ts';
import { image, index } from '../../support/registry/content.ts';
import { podOf, review } from '../../webhook/support.ts';
import { MiB, patienceMs } from './measured.ts';
import { startMeasured } from './measured-world.ts';

/**
 * Sends requests one after the other and keeps the longest time in ms: processor time of the answering
 * process, because other tests may use the processors.
 */
const probe = `
  const { readFileSync } = require('node:fs');
  const { url, pid, longestMs } = require('node:worker_threads').workerData;
  // Fields 14 and 15 of proc_pid_stat(5), in hundredths of a second.
  const usedMs = () => {
    const fields = readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ')[1].split(' ');
    return 10 * (Number(fields[11]) + Number(fields[12]));
  };
  (async () => {
    for (;;) {
      const before = usedMs();
      await (await fetch(url)).text();
      longestMs[0] = Math.max(longestMs[0], 1 + usedMs() - before);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
`;

t.test(
  'the agent answers /healthz within a second while it reads documents of the maximum size',
  async (t) => {
    const { host, agent, statusesOf, survived } = await startMeasured(t);
    const filler = 'x'.repeat(4 * MiB - 2000);
    const values = Array.from({ length: 18_000 }, () => 1);
    const entries = [{ content: image('linux/amd64') }];
    const pods = Array.from({ length: sized(4, 8) }, (_, pod) => {
      const names = Array.from({ length: 8 }, (_, each) => `large-${pod}/${each}`);
      for (const [each, name] of names.entries())
        host.push(
          name,
          'v1',
          index(entries, 'oci', each % 2 ? { annotations: { name, filler } } : { name, values }),
        );
      return review({ object: podOf(names.map((name) => `${host.host}/${name}:v1`)) });
    });
    // In a separate thread, because this one is busy with the registry.
    const longestMs = new Int32Array(new SharedArrayBuffer(4));
    const workerData = { url: `${agent.health}/healthz`, pid: agent.pid, longestMs };
    const prober = new Worker(probe, { eval: true, execArgv: [], workerData });
    t.teardown(() => prober.terminate());
    await until(() => longestMs[0] !== 0, 'the first probe', patienceMs);
    const statuses: (number | string | undefined)[] = [];
    const documents = (): number => host.requests.filter(({ path }) => path.includes('large-')).length;
    // The webhook answers before the agent has read all of them.
    for (let round = 0; round < 6 && documents() < sized(30, 1000); round += 1)
      statuses.push(...(await statusesOf(pods)));
    const read = documents();
    const [longest = 0] = longestMs;
    t.comment(`${read} documents, ${longest} ms`);
    t.ok(read >= 8, `${read} documents were read`);
    t.ok(longest > 0 && longest < 1000, `${longest} ms`);
    t.ok(
      statuses.every((status) => status === 200),
      statuses.join(),
    );
    await survived(t, 'large-documents');
  },
);

t.test('a rogue agent cannot flood the warm-up of a webhook', async (t) => {
  const pki = await createPki(t);
  let sent = 0;
  let isCut = false;
  const [before, after] =
    `${JSON.stringify({ ...factsOf('r.example/r:1'), image: 'r.example/rNUMBER:1' })}\n`.split('NUMBER');
  const rogue = await startScripted(t, pki, {
    known: (response) => {
      response.once('close', () => (isCut = true));
      const more = (): void => {
        let hasRoom = true;
        while (hasRoom && !response.destroyed) {
          const lines = Array.from({ length: 1000 }, () => {
            sent += 1;
            return `${before}${sent}${after}`;
          });
          hasRoom = response.write(lines.join(''));
        }
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    },
  });
  const { survived } = await startMeasured(t, [rogue.url], pki);
  await until(() => isCut, 'the warm-up is cut', patienceMs);
  t.comment(`${sent} facts`);
  await survived(t, 'warm-up');
});
