/**
 * Warm admission beside a bare node:https JSON echo of the same sizes, in the same run: both are child processes, both
 * are sent the same requests over the same number of TLS keep-alive connections, in alternating rounds. CPU time per
 * request is the figure that counts; latencies depend on whatever else the machine does.
 *
 * `npm run bench:admission`, or `measureAdmission()` from a bench that combines several.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCa } from '../test/support/certificates.ts';
import { review } from './admission/sample.ts';
import { startMeasured, type MeasuredServer } from './support/child.ts';
import { median, percentile, runLoad, type Load, type LoadResult } from './support/load.ts';
import { table } from './support/table.ts';

export interface AdmissionMeasure {
  readonly server: string;
  /** Median of the rounds. */
  readonly cpuMicrosPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentBytes: number;
}

export interface AdmissionBench {
  readonly requestBytes: number;
  readonly answerBytes: number;
  readonly echo: AdmissionMeasure;
  readonly webhook: AdmissionMeasure;
  /** CPU of the webhook over CPU of the echo: the budget is 1.5. */
  readonly ratio: number;
  readonly budget: number;
}

const budget = 1.5;
const rounds = 15;
const requestsPerRound = 2000;
/** Until the optimizing compiler is through with all that a request runs; CPU per request falls for as long. */
const warmUpRequests = 30_000;
/** As many as the API server had in flight for 50 creates at a time, divided by three replicas. */
const connections = 16;

interface Side {
  readonly name: string;
  readonly server: MeasuredServer;
  readonly cpu: number[];
  readonly results: LoadResult[];
}

/** Runs the bench; takes about half a minute. */
export async function measureAdmission(): Promise<AdmissionBench> {
  const ca = await createCa();
  const tlsDir = await mkdtemp(join(tmpdir(), 'archwright-bench-'));
  const body = Buffer.from(review);
  const load = (url: string, requests: number): Load => ({ url, ca: ca.cert, body, connections, requests });
  const servers: MeasuredServer[] = [];
  try {
    const pair = await ca.issue({ cn: 'bench', ip: ['127.0.0.1'] });
    await writeFile(join(tlsDir, 'tls.crt'), pair.cert);
    await writeFile(join(tlsDir, 'tls.key'), pair.key);

    const webhook = await startMeasured(new URL('admission/webhook.ts', import.meta.url), { tlsDir });
    servers.push(webhook);
    const { answerBytes } = await runLoad(load(webhook.url, warmUpRequests));
    const echo = await startMeasured(new URL('admission/echo.ts', import.meta.url), { tlsDir, answerBytes });
    servers.push(echo);
    await runLoad(load(echo.url, warmUpRequests));

    const sides: readonly [Side, Side] = [
      { name: 'node:https JSON echo', server: echo, cpu: [], results: [] },
      { name: 'webhook, warm', server: webhook, cpu: [], results: [] },
    ];
    for (let round = 0; round < rounds; round += 1) {
      for (const side of sides) {
        const before = await side.server.usage();
        side.results.push(await runLoad(load(side.server.url, requestsPerRound)));
        const after = await side.server.usage();
        side.cpu.push((after.cpuMicros - before.cpuMicros) / requestsPerRound);
      }
    }
    const [measuredEcho, measuredWebhook] = [await summary(sides[0]), await summary(sides[1])];
    return {
      requestBytes: body.length,
      answerBytes,
      echo: measuredEcho,
      webhook: measuredWebhook,
      ratio: measuredWebhook.cpuMicrosPerRequest / measuredEcho.cpuMicrosPerRequest,
      budget,
    };
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(tlsDir, { recursive: true });
  }
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

/** The result as a table with one line on the budget. */
export function formatAdmission(bench: AdmissionBench): string {
  const rows = [bench.echo, bench.webhook].map((one) => [
    one.server,
    one.cpuMicrosPerRequest.toFixed(1),
    one.requestsPerSecond.toFixed(0),
    one.p50Ms.toFixed(2),
    one.p99Ms.toFixed(2),
    (one.residentBytes / 1024 / 1024).toFixed(0),
  ]);
  const verdict = bench.ratio <= bench.budget ? 'within' : 'over';
  return [
    `Warm admission, ${bench.requestBytes} bytes in, ${bench.answerBytes} bytes out, ${connections} TLS keep-alive connections`,
    '',
    table(['server', 'CPU µs/request', 'requests/s', 'p50 ms', 'p99 ms', 'RSS MiB'], rows),
    '',
    `CPU ratio ${bench.ratio.toFixed(2)}, ${verdict} the budget of ${bench.budget.toFixed(1)}`,
  ].join('\n');
}

if (import.meta.main) process.stdout.write(`${formatAdmission(await measureAdmission())}\n`);
