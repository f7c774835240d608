/**
 * Cold inspection against a real HTTPS registry on loopback, in this process: requests for an image, by kind,
 * and the time over an open connection. A remote registry adds its own time.
 * `npm run bench:inspection`.
 */
import { createRegistrySource } from '../src/images/sources/registry-source.ts';
import type { ImageFacts, ImageFactsSource } from '../src/images/facts/facts.ts';
import { parseReference } from '../src/images/references/reference.ts';
import { createRegistryClient } from '../src/registry/client.ts';
import { createDefaultEndpoints } from '../src/registry/endpoints/endpoint.ts';
import { secret } from '../src/telemetry/secret.ts';
import { image, multiArch } from '../test/support/registry/content.ts';
import { startTestRegistry, type TestRegistry } from '../test/support/registry/server.ts';
import { createIssuer } from '../test/support/registry/tokens.ts';
import { percentile } from './support/load.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

/** Images of each kind; the time is the median of them. */
const count = 100;
const user = { username: 'node', password: 'node-password' };
/** Columns of the table, and the registry's counters in each. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  'GET manifest': ['GET manifests'],
  'HEAD manifest': ['HEAD manifests'],
  'GET blob': ['GET blobs'],
  token: ['GET token', 'POST token'],
};
const deadlineMs = 30_000;

interface Case {
  readonly name: string;
  readonly registry: TestRegistry;
  readonly source: ImageFactsSource;
  readonly images: readonly string[];
  /** Known facts that only need confirmation. */
  readonly known?: readonly ImageFacts[];
}

interface Measured {
  readonly name: string;
  /** For one image, in the order of `kinds`. */
  readonly requests: readonly number[];
  readonly medianMs: number;
  readonly answers: readonly ImageFacts[];
}

/** Takes a few seconds. */
export async function benchInspection(): Promise<Section> {
  const open = await startTestRegistry();
  const closed = await startTestRegistry({
    auth: { kind: 'bearer', issuer: createIssuer({ users: { [user.username]: user.password } }) },
  });
  // Loopback addresses are used without verification, as in containerd.
  const registry = createRegistryClient({ environment: {}, hostRoot: '/nonexistent' });
  const anonymous = sourceWith(registry, false);
  const loggedIn = sourceWith(registry, true);
  try {
    const multi = fill(open, 'multi', multiArch(['linux/amd64', 'linux/arm64', 'linux/s390x']));
    const single = fill(open, 'single', image('linux/arm64'));
    const unknown = fill(closed, 'team', multiArch(['linux/amd64', 'linux/arm64']));
    const tags = count + 1;
    const oneRepository = Array.from({ length: tags }, (_, tag) => `${closed.host}/shared/app:${tag}`);
    for (let tag = 0; tag < tags; tag += 1)
      closed.push(
        'shared/app',
        String(tag),
        multiArch(['linux/amd64', 'linux/arm64'], { label: String(tag) }),
      );
    // The first image of a repository fetches the token for the others, and opens the connections.
    for (const [source, first] of [
      [anonymous, multi[0]],
      [loggedIn, oneRepository[0]],
    ] as const)
      await inspect(source, first ?? '', undefined);

    const cold = await measure({ name: 'multi-arch', registry: open, source: anonymous, images: multi });
    const known = await measure({
      name: 'multi-arch, private, token known',
      registry: closed,
      source: loggedIn,
      images: oneRepository.slice(1),
    });
    const measured = [
      cold,
      await measure({ name: 'single-arch', registry: open, source: anonymous, images: single }),
      await measure({
        name: 'multi-arch, private, token unknown',
        registry: closed,
        source: loggedIn,
        images: unknown,
      }),
      known,
      await measure({
        name: 'revalidation of an unchanged tag',
        registry: open,
        source: anonymous,
        images: multi,
        known: cold.answers,
      }),
      await measure({
        name: 'revalidation, private, token known',
        registry: closed,
        source: loggedIn,
        images: oneRepository.slice(1),
        known: known.answers,
      }),
    ];
    return section(measured, known, measured.at(-1) ?? known);
  } finally {
    registry.close();
    await Promise.all([open.close(), closed.close()]);
  }
}

function section(measured: readonly Measured[], cold: Measured, revalidated: Measured): Section {
  const requestsOf = ({ requests }: Measured): number => requests.reduce((sum, one) => sum + one, 0);
  const budget = { limit: 1, unit: 'request', digits: 2 };
  return {
    script: 'bench:inspection',
    title: 'Cold inspection',
    text: [
      `Requests for one image, and the median time of ${count} images, each looked up for the first time.`,
      '',
      table(
        ['image', ...Object.keys(kinds), 'p50 ms'],
        measured.map(({ name, requests, medianMs }) => [
          name,
          ...requests.map((number) => String(Number(number.toFixed(2)))),
          medianMs.toFixed(2),
        ]),
      ),
    ].join('\n'),
    budgets: [
      { what: 'requests for a multi-arch image, token known', value: requestsOf(cold), ...budget },
      { what: 'requests to revalidate it', value: requestsOf(revalidated), ...budget },
    ],
  };
}

function sourceWith(registry: ReturnType<typeof createRegistryClient>, login: boolean): ImageFactsSource {
  const { username, password } = user;
  const credentials = login
    ? [
        {
          credential: { username, password: secret(password) },
          source: 'docker-config' as const,
          key: '',
          origin: 'bench',
          id: 'bench',
        },
      ]
    : [];
  return createRegistrySource({
    registry,
    endpoints: createDefaultEndpoints(),
    credentials: { lookup: () => Promise.resolve(credentials) },
    mayAskAnonymously: () => true,
  });
}

/** The same content in many repositories: an image of another name needs a new lookup. */
function fill(registry: TestRegistry, name: string, content: Parameters<TestRegistry['push']>[2]): string[] {
  return Array.from({ length: count }, (_, index) => {
    registry.push(`${name}/app-${index}`, '1', content);
    return `${registry.host}/${name}/app-${index}:1`;
  });
}

async function measure({ name, registry, source, images, known }: Case): Promise<Measured> {
  registry.clearRequests();
  const times: number[] = [];
  const answers: ImageFacts[] = [];
  for (const [index, one] of images.entries()) {
    const start = performance.now();
    answers.push(await inspect(source, one, known?.[index]));
    times.push(performance.now() - start);
  }
  const counts = registry.counts();
  const expected = new Set(Object.values(kinds).flat());
  const unexpected = Object.keys(counts).filter((kind) => !expected.has(kind));
  if (unexpected.length > 0) throw new Error(`requests that have no column: ${unexpected.join(', ')}`);
  return {
    name,
    requests: Object.values(kinds).map(
      (column) => column.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0) / images.length,
    ),
    medianMs: percentile(
      times.sort((a, b) => a - b),
      0.5,
    ),
    answers,
  };
}

async function inspect(
  source: ImageFactsSource,
  text: string,
  known: ImageFacts | undefined,
): Promise<ImageFacts> {
  const facts = await source.lookup(
    { image: text, reference: parseReference(text), maxAgeMs: 0, pullCredentials: [] },
    { signal: AbortSignal.timeout(deadlineMs), ...(known && { known }) },
  );
  if (facts.error) throw new Error(`${text}: ${facts.error.message}`);
  return facts;
}

if (import.meta.main) printSection(await benchInspection());
