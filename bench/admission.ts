/**
 * Warm admission compared with a bare node:https JSON echo of the same sizes, in the same run. Both are child
 * processes and get the same requests over the same number of TLS keep-alive connections, in alternating
 * rounds. CPU time per request is the figure that counts; latencies depend on the load of the machine.
 *
 * `npm run bench:admission`; the whole table by `npm run bench`.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCa } from '../test/support/certificates.ts';
import { review } from './admission/sample.ts';
import { startMeasured, type MeasuredServer } from './support/child.ts';
import { median, openLoad, percentile, type Load, type LoadResult } from './support/load.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

interface AdmissionMeasure {
  readonly server: string;
  /** Median of the rounds. */
  readonly cpuMicrosPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentBytes: number;
}

interface AdmissionBench {
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly echo: AdmissionMeasure;
  readonly webhook: AdmissionMeasure;
  /** CPU of the webhook over CPU of the echo in each round, sorted. */
  readonly ratios: readonly number[];
}

const budgetRatio = 1.5;
const rounds = 40;
/** Short rounds: other load of the machine affects both sides. */
const requestsPerRound = 1000;
/** Until the optimizing compiler has finished a request's code; CPU time per request falls until then. */
const warmUpRequests = 30_000;
/** As many as the API server had in flight for 50 creates at a time, divided by three replicas. */
const connections = 16;

interface Side {
  readonly name: string;
  readonly server: MeasuredServer;
  readonly load: Load;
  readonly cpu: number[];
  readonly results: LoadResult[];
}

async function measure(): Promise<AdmissionBench> {
  const ca = await createCa();
  const tlsDir = await mkdtemp(join(tmpdir(), 'archwright-bench-'));
  const body = Buffer.from(review);
  const sides: Side[] = [];

  async function start(name: string, file: string, more: object = {}): Promise<Side> {
    const server = await startMeasured(new URL(file, import.meta.url), { tlsDir, ...more });
    const load = await openLoad({ url: server.url, ca: ca.cert, body, connections });
    const side: Side = { name, server, load, cpu: [], results: [] };
    sides.push(side);
    return side;
  }
  try {
    const pair = await ca.issue({ cn: 'bench', ip: ['127.0.0.1'] });
    await writeFile(join(tlsDir, 'tls.crt'), pair.cert);
    await writeFile(join(tlsDir, 'tls.key'), pair.key);

    const webhook = await start('webhook, warm', 'admission/webhook.ts');
    const { responseBytes } = await webhook.load.run(warmUpRequests);
    const echo = await start('node:https JSON echo', 'admission/echo.ts', { responseBytes });
    await echo.load.run(warmUpRequests);

    const ratios: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const bare = await runRound(echo);
      ratios.push((await runRound(webhook)) / bare);
    }
    return {
      requestBytes: body.length,
      responseBytes,
      echo: await summary(echo),
      webhook: await summary(webhook),
      ratios: ratios.sort((a, b) => a - b),
    };
  } finally {
    for (const { load } of sides) load.close();
    await Promise.all(sides.map(({ server }) => server.stop()));
    await rm(tlsDir, { recursive: true });
  }
}

/** @returns CPU time of one request, microseconds */
async function runRound({ server, load, cpu, results }: Side): Promise<number> {
  const before = await server.usage();
  results.push(await load.run(requestsPerRound));
  const after = await server.usage();
  const perRequest = (after.cpuMicros - before.cpuMicros) / requestsPerRound;
  cpu.push(perRequest);
  return perRequest;
}

async function summary({ name, server, cpu, results }: Side): Promise<AdmissionMeasure> {
  const latencies = results.flatMap((result) => result.latencies).sort((a, b) => a - b);
  return {
    server: name,
    cpuMicrosPerRequest: median(cpu),
    requestsPerSecond: median(results.map(({ seconds }) => requestsPerRound / seconds)),
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    residentBytes: (await server.usage()).residentBytes,
  };
}

/** Takes about half a minute. */
export async function benchAdmission(): Promise<Section> {
  const { requestBytes, responseBytes, echo, webhook, ratios } = await measure();
  const rows = [echo, webhook].map((one) => [
    one.server,
    one.cpuMicrosPerRequest.toFixed(1),
    one.requestsPerSecond.toFixed(0),
    one.p50Ms.toFixed(2),
    one.p99Ms.toFixed(2),
    (one.residentBytes / 1024 / 1024).toFixed(0),
  ]);
  const quarters = [0.25, 0.75].map((share) => percentile(ratios, share).toFixed(2));
  return {
    script: 'bench:admission',
    title: 'Warm admission',
    text: [
      `${requestBytes} bytes in, ${responseBytes} bytes out, ${connections} TLS keep-alive connections; ${rounds} rounds of ` +
        `${requestsPerRound} requests to each server in turn. The ratio of CPU times is the median of the rounds; half of ` +
        `them lie between ${quarters.join(' and ')}.`,
      '',
      table(['server', 'CPU µs/request', 'requests/s', 'p50 ms', 'p99 ms', 'RSS MiB'], rows),
    ].join('\n'),
    budgets: [
      {
        what: 'CPU of a warm admission over that of a bare echo',
        value: percentile(ratios, 0.5),
        limit: budgetRatio,
        unit: '×',
        digits: 2,
      },
    ],
  };
}

if (import.meta.main) printSection(await benchAdmission());
