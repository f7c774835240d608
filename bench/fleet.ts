/**
 * Registry requests at the start of a cluster: 10,000 pods of 500 images are created through 3 webhooks with
 * 20 agents, all with empty memories. These are the real servers, with TLS, set up by the program's own
 * `cmd/`. Unlike in a cluster, they share one process and one loopback. `npm run bench:fleet`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concurrently } from '../src/async/concurrently.ts';
import { createCa, issueTls } from '../test/support/certificates.ts';
import { image, multiArch } from '../test/support/registry/content.ts';
import { startTestRegistry, type TestRegistry } from '../test/support/registry/server.ts';
import { podReview } from './fleet/pods.ts';
import { createSender } from './fleet/send.ts';
import { startOneAgent, startOneWebhook } from './fleet/servers.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

const pods = 10_000;
const images = 500;
/** One image of five is built for one architecture only, which costs a second request. */
const singleArchEvery = 5;
const webhooks = 3;
const agents = 20;
/**
 * Concurrent creates. With many more, one process for all 24 servers has no time for the handshakes between
 * them, an effect that no cluster has.
 */
const concurrency = 4;
/** Until all lookups of the last admissions are answered. */
const settleLimitMs = 60_000;
const settlePauseMs = 50;

/** Takes about a minute. */
export async function benchFleet(): Promise<Section> {
  const dir = await mkdtemp(join(tmpdir(), 'archwright-bench-'));
  const closing: (() => unknown)[] = [() => rm(dir, { recursive: true })];
  try {
    const registry = await startTestRegistry();
    closing.push(() => registry.close());
    const names = fill(registry);
    const ca = await createCa();
    const agentDir = await issueTls(ca, join(dir, 'agent'), {
      cn: 'archwright-agent',
      dns: ['archwright-agent'],
    });
    const clientDir = await issueTls(ca, join(dir, 'client'), { cn: 'archwright-webhook', client: true });
    const webhookDir = await issueTls(ca, join(dir, 'webhook'), { cn: 'webhook', ip: ['127.0.0.1'] });
    const urls = await Promise.all(
      Array.from({ length: agents }, (_, index) => startOneAgent(agentDir, `node-${index}`, closing)),
    );
    const running = await Promise.all(
      Array.from({ length: webhooks }, () => startOneWebhook(webhookDir, clientDir, urls, closing)),
    );

    const send = createSender({ ca: ca.cert, connections: concurrency });
    closing.push(() => send.close());
    const started = performance.now();
    await concurrently([...Array(pods).keys()], concurrency, async (index) => {
      const webhook = running[index % webhooks];
      if (webhook) await send.post(`${webhook.url}/mutate?timeout=10s`, podReview(index, names));
    });
    const seconds = (performance.now() - started) / 1000;
    await untilMemoriesAreFull(running.map(({ cache }) => cache));
    const pages = await Promise.all(running.map(({ metrics }) => metrics.render()));
    return section(registry.counts(), seconds, (sample) =>
      pages.reduce((sum, page) => sum + sampleIn(page, sample), 0),
    );
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

/** @param total of a metric over all webhooks */
function section(
  counts: Readonly<Record<string, number>>,
  seconds: number,
  total: (sample: string) => number,
): Section {
  const singles = images / singleArchEvery;
  const answered = total('archwright_admission_inline_waits_total{outcome="answered"}');
  const expired = total('archwright_admission_inline_waits_total{outcome="expired"}');
  const rows = Object.entries(counts).map(([kind, number]) => [`requests: ${kind}`, String(number)]);
  return {
    script: 'bench:fleet',
    title: 'A cluster that starts',
    text: [
      `${pods} pods of ${images} images (${singles} of them single-arch), two in each pod, created ${concurrency} at a time ` +
        `through ${webhooks} webhooks with ${agents} agents, in one process.`,
      '',
      table(
        ['what', 'amount'],
        [
          ...rows,
          ['admissions answered from the cache at once', String(pods - answered - expired)],
          ['admissions that waited and were answered in time', String(answered)],
          ['admissions whose inline budget expired', String(expired)],
          ['admissions per second', (pods / seconds).toFixed(0)],
        ],
      ),
    ].join('\n'),
    budgets: [
      budget('manifest GETs for 10,000 pods of 500 images', counts['GET manifests'] ?? 0, images),
      budget(`blob GETs for them, ${singles} single-arch`, counts['GET blobs'] ?? 0, singles),
    ],
  };
}

function budget(what: string, value: number, limit: number): Section['budgets'][number] {
  return { what, value, limit, unit: 'requests', digits: 0 };
}

function fill(registry: TestRegistry): string[] {
  return Array.from({ length: images }, (_, index) => {
    const repository = `team-${index % 20}/app-${index}`;
    const label = String(index);
    const content =
      index % singleArchEvery === 0
        ? image('linux/amd64', { label })
        : multiArch(['linux/amd64', 'linux/arm64'], { label });
    registry.push(repository, '1', content);
    return `${registry.host}/${repository}:1`;
  });
}

/** The value of a sample without time stamp. */
function sampleIn(page: string, sample: string): number {
  const line = page.split('\n').find((one) => one.startsWith(`${sample} `));
  if (line === undefined) throw new Error(`there is no metric ${sample}`);
  return Number(line.slice(sample.length + 1));
}

async function untilMemoriesAreFull(memories: readonly { readonly size: number }[]): Promise<void> {
  const end = performance.now() + settleLimitMs;
  while (memories.some(({ size }) => size < images)) {
    if (performance.now() > end)
      throw new Error(`memories hold ${memories.map(({ size }) => size).join(', ')} of ${images} images`);
    await new Promise((resolve) => setTimeout(resolve, settlePauseMs));
  }
}

if (import.meta.main) printSection(await benchFleet());
