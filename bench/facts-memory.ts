/**
 * Memory of 100,000 cached images, compared with the estimate for the cache's bound, and the time of a peek. Run
 * with `npm run bench:memory`; the heap can be measured only with --expose-gc.
 *
 * The images differ as real ones do: each has its own name and digest, and they share a few hundred
 * combinations of platforms, media type and endpoint.
 */
import { createHash } from 'node:crypto';
import type { ImageFacts, ImageRequest, ImageFactsSource } from '../src/images/facts/facts.ts';
import { FactsCache } from '../src/images/cache/cache.ts';
import type { Platform } from '../src/names/platform.ts';
import { createReferenceCache } from '../src/images/references/reference.ts';
import { createLog } from '../src/telemetry/log.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

const count = 100_000;
const budgetMiB = 64;
const mebibyte = 1_048_576;
const peeks = 1_000_000;
const hotImages = 500;

const architectures = ['amd64', 'arm64', 'arm', '386', 'ppc64le', 's390x', 'riscv64', 'mips64le'];
const registries = [
  'docker.io/library',
  'ghcr.io/organisation',
  'quay.io/team',
  'registry.corp.example:5000/department/group',
];

const noSource: ImageFactsSource = {
  lookup: () => Promise.reject(new Error('the benchmark sends no request')),
};

/** Text as it comes from a parser: every fact has separate strings, as if read from a response. */
function factsOf(index: number): ImageFacts {
  return JSON.parse(
    JSON.stringify({
      image: imageOf(index),
      digest: `sha256:${createHash('sha256').update(String(index)).digest('hex')}`,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      platforms: platformsOf(index % 256),
      source: 'memory',
      credentialSource: 'anonymous',
      endpoint: `mirror-${index % 3}.corp.example`,
      confirmedAt: new Date().toISOString(),
      stale: false,
    }),
  ) as ImageFacts;
}

function imageOf(index: number): string {
  return `${registries[index % registries.length]}/service-${index}:v1.${index % 97}.${index % 31}`;
}

/** One architecture for each bit. */
function platformsOf(bits: number): Platform[] {
  return architectures
    .filter((_, position) => bits === 0 || (bits & (1 << position)) !== 0)
    .map((architecture) => ({ os: 'linux', architecture }));
}

function heapMiB(): number {
  if (globalThis.gc === undefined) throw new Error('run it with node --expose-gc');
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed / mebibyte;
}

function nanosecondsEach(times: number, action: (index: number) => void): number {
  const start = process.hrtime.bigint();
  for (let index = 0; index < times; index += 1) action(index);
  return Number(process.hrtime.bigint() - start) / times;
}

/** Takes a few seconds. */
export async function benchFactsMemory(): Promise<Section> {
  const cache = new FactsCache({
    source: noSource,
    log: createLog({ level: 'silent' }),
    maxBytes: 1024 * mebibyte,
  });
  const parse = createReferenceCache();
  const request = (index: number): ImageRequest => {
    const image = imageOf(index);
    return { image, reference: parse(image), maxAgeMs: 3_600_000, pullCredentials: [] };
  };

  const idle = heapMiB();
  for (let index = 0; index < count; index += 1) cache.learn(factsOf(index));
  const used = heapMiB() - idle;
  if (cache.size !== count) throw new Error(`expected ${count} facts, found ${cache.size}`);
  const estimated = cache.bytes / mebibyte;

  const hot = Array.from({ length: hotImages }, (_, index) => request(index));
  const all = hot.map((one) => () => cache.peek(one));
  for (const peek of all) peek();
  nanosecondsEach(peeks / 10, (index) => all[index % hotImages]?.());
  const hotNanoseconds = nanosecondsEach(peeks, (index) => all[index % hotImages]?.());
  const cold = Array.from({ length: count / 10 }, (_, index) => request(index * 10 + 5));
  const coldNanoseconds = nanosecondsEach(cold.length, (index) => {
    const one = cold[index];
    if (one && !cache.peek(one)) throw new Error(`${one.image} is missing`);
  });
  await cache.close();

  return {
    script: 'bench:memory',
    title: 'Memory for 100,000 images',
    text: table(
      ['what', 'amount'],
      [
        [`heap for ${count} facts, over idle`, `${used.toFixed(1)} MiB`],
        ["the same, by the cache's own estimate", `${estimated.toFixed(1)} MiB`],
        [`peek at one of ${hotImages} images in use`, `${hotNanoseconds.toFixed(0)} ns`],
        ['first peek at an image', `${coldNanoseconds.toFixed(0)} ns`],
      ],
    ),
    budgets: [
      {
        what: 'memory for 100,000 cached images, over idle',
        value: used,
        limit: budgetMiB,
        unit: 'MiB',
        digits: 1,
      },
    ],
  };
}

if (import.meta.main) printSection(await benchFactsMemory());
