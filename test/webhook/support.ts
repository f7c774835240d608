/** For tests of the webhook: a webhook on a socket, a scripted source of facts, reviews. */
import type { Test } from 'tap';
import {
  type ImageFacts,
  type ImageRequest,
  type ImageFactsSource,
  createRequestOf,
} from '../../src/images/facts/facts.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { defaultCacheTimes, facts, factsOf } from '../support/facts.ts';
import type { Pod, PodSpec, Secret } from '../../src/kube/api/objects.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import type { Cluster } from '../../src/cluster/cluster.ts';
import { startWebhook, type WebhookOptions } from '../../src/webhook/webhook.ts';
import { seriesOf, recordingLog } from '../support/captured.ts';
import { createCa } from '../support/certificates.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { until } from '../support/until.ts';
import { defaultPolicy as policy } from '../support/placement-input.ts';
import { keepAlive, send, tlsDirectory, type Received } from '../serving/support.ts';

export const ca = await createCa();
export const serverPair = await ca.issue({ cn: 'webhook', ip: ['127.0.0.1'] });

/** Facts that a registry has confirmed now, by the clock of the machine. */
export function freshFacts(
  image: string,
  architectures: readonly string[],
  more: Partial<ImageFacts> = {},
): ImageFacts {
  const { platforms } = facts(architectures.join(' '));
  return factsOf(image, { platforms, confirmedAt: new Date().toISOString(), ...more });
}

/** A source that knows images by name, and records lookups. */
export function scripted(
  images: Readonly<Record<string, readonly string[] | ImageFacts>>,
): ImageFactsSource & {
  readonly lookups: ImageRequest[];
} {
  const lookups: ImageRequest[] = [];
  return {
    lookups,
    lookup: (request) => {
      lookups.push(request);
      const known = images[request.image];
      if (known === undefined) {
        const error = { code: 'not-found' as const, message: 'no such image' };
        return Promise.resolve(freshFacts(request.image, [], { error }));
      }
      return Promise.resolve('platforms' in known ? known : freshFacts(request.image, known));
    },
  };
}

/** A source whose lookups hang. */
export const hanging: ImageFactsSource = { lookup: () => new Promise(() => undefined) };

/** A cluster of plain values. */
export function clusterOf(parts: Partial<Cluster> & { secrets?: Readonly<Record<string, Secret>> }): Cluster {
  return {
    namespaceLabels: () => ({}),
    nodeArchitecture: () => undefined,
    nodeHostnames: (node) => [node],
    nodeClasses: () => () => undefined,
    secret: (namespace, name) => Promise.resolve(parts.secrets?.[`${namespace}/${name}`]),
    serviceAccountPullSecrets: () => Promise.resolve([]),
    ready: () => Promise.resolve(),
    close: () => undefined,
    ...parts,
  };
}

/** A webhook on a free port with TLS, over a real cache, stopped after the test. */
export async function serve(
  t: Test,
  options: Partial<WebhookOptions> & { source?: ImageFactsSource; level?: 'debug' | 'info' } = {},
) {
  const { source = scripted({}), level, ...rest } = options;
  const { log, lines } = recordingLog(level);
  const metrics = createMetrics();
  const own = new FactsCache({ source, log });
  t.teardown(() => own.close());
  const cache = rest.cache ?? own;
  const tlsDir = await tlsDirectory(t, serverPair);
  const webhook = await startWebhook({
    listen: '127.0.0.1:0',
    tls: tlsDir,
    inlineBudgetMs: () => 2000,
    policies: { policyOf: () => policy },
    cache,
    requestOf: createRequestOf(defaultCacheTimes, false),
    log,
    metrics,
    ...rest,
    limits: { quietMs: 1, checkMs: 20, ...rest.limits },
  });
  t.teardown(() => webhook.stop({ noticeMs: 0, graceMs: 0 }));
  await webhook.ready;
  const agent = keepAlive(t, webhook.url, { ca: ca.cert });

  /** Posts any body. */
  const post = (
    body: string | Buffer,
    { path = '/mutate?timeout=10s', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
  ): Promise<Received> =>
    send(`${webhook.url}${path}`, {
      method: 'POST',
      agent,
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
  /** Posts a review and reads the response. */
  const admit = async (request: Readonly<Record<string, unknown>>, path?: string): Promise<Admitted> =>
    admittedOf(await post(review(request), path === undefined ? {} : { path }));
  return {
    webhook,
    cache,
    metrics,
    lines,
    tlsDir,
    agent,
    post,
    admit,
    /** Posts the creation of a pod with these images, and reads the response. */
    admitPod: (images: readonly string[], spec?: Partial<PodSpec>) => admit({ object: podOf(images, spec) }),
    /** Value of a metric line, such as `x_total{kind="Pod"}`. */
    metric: async (line: string): Promise<number> => Number(await seriesOf(metrics, line)),
  };
}

/** Lets the budget of an admission pass, which is the only timer of the clock. */
export async function passBudget(t: Test, clock: FakeClock, ms: number): Promise<void> {
  await until(() => clock.pending === 1, 'the wait');
  await clock.advance(ms - 1);
  t.equal(clock.pending, 1, 'it waits as long as the budget');
  await clock.advance(1);
}

export const uid = '705ab4f5-6393-11e8-b7cc-42010a800002';

/** The text of a review. Default: the creation of a pod. */
export function review(request: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid,
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      operation: 'CREATE',
      namespace: 'shop',
      dryRun: false,
      ...request,
    },
  });
}

export function podOf(images: readonly string[], spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'web-', namespace: 'shop' },
    spec: {
      containers: images.map((image, index) => ({
        name: `c${index}`,
        image,
        imagePullPolicy: 'IfNotPresent',
      })),
      ...spec,
    },
  };
}

/** A request about a workload of the group apps or batch. */
export function workload(
  kind: string,
  object: unknown,
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const group = kind === 'Job' || kind === 'CronJob' ? 'batch' : 'apps';
  return { kind: { group, version: 'v1', kind }, object, ...more };
}

export type Admitted = ReturnType<typeof admittedOf>;

export function admittedOf(response: Received) {
  if (response.status !== 200) throw new Error(`status ${response.status}: ${response.body}`);
  const parsed = JSON.parse(response.body) as {
    apiVersion: string;
    kind: string;
    response: Record<string, unknown>;
  };
  if (parsed.apiVersion !== 'admission.k8s.io/v1' || parsed.kind !== 'AdmissionReview')
    throw new Error(response.body);
  const raw = parsed.response;
  const patch =
    typeof raw['patch'] === 'string' ? Buffer.from(raw['patch'], 'base64').toString('utf8') : '[]';
  const operations = JSON.parse(patch) as readonly { op: string; path: string; value?: unknown }[];
  const text = JSON.stringify(
    operations.filter(({ path }) => path.includes('affinity') || path.includes('Affinity')),
  );
  const match = /"key":"kubernetes.io\/arch","operator":"In","values":(\[[^\]]*\])/.exec(text);
  return {
    allowed: raw['allowed'] === true,
    uid: String(raw['uid']),
    operations,
    warnings: (raw['warnings'] as readonly string[] | undefined) ?? [],
    message: (raw['status'] as { message?: string } | undefined)?.message ?? '',
    raw,
    /** Architectures in the patch's required terms. */
    required: match?.[1] === undefined ? undefined : (JSON.parse(match[1]) as string[]),
    gated: operations.some(
      ({ path, value }) => path.includes('schedulingGates') && JSON.stringify(value).includes('arch.example'),
    ),
  };
}
