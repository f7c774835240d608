/** The feature between an API server with a store and real webhook servers. */
import { lead } from '../../leader.ts';
import { createServer } from 'node:https';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { backdateMs, issueAuthority, issueLeaf, type Pair } from '../../../../src/certificates/issue.ts';
import {
  readCaBundles,
  type WebhookConfiguration,
  liveWebhooks,
} from '../../../../src/controller/state/webhooks-file.ts';
import { webhookConfiguration } from '../../../../src/controller/features/webhook-configuration/webhook-configuration.ts';
import type { Configuration } from '../../../../src/policy/settings/all.ts';
import { reveal } from '../../../../src/telemetry/secret.ts';
import { until } from '../../../support/until.ts';
import { createWorld, namespace, type World } from '../certificates/world.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { listen } from '../../../support/listen.ts';

export const name = 'archwright';
export const path = paths.mutatingWebhookConfigurations(name);
export const subject = {
  commonName: 'archwright-webhook',
  names: ['hook.archwright.svc'],
  usage: 'server',
} as const;
export const validity = { from: Date.now() - backdateMs, to: Date.now() + 3_600_000 };

export const fileText = (
  more = 'failurePolicy: Fail',
  target = `service: { namespace: ${namespace}, name: hook, path: /mutate }`,
): string => `
webhooks:
  - name: pods.arch.example
    clientConfig: { ${target} }
    admissionReviewVersions: [v1]
    sideEffects: None
    ${more}
    rules: [{ apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE] }]
`;

interface Hook {
  readonly port: number;
  status: number;
  probes: number;
  /** The paths of reviews that it accepts. */
  accepted: (path: string) => boolean;
  use(pair: Pair): void;
}

export async function startHook(t: Test, pair: Pair): Promise<Hook> {
  const files = (of: Pair) => ({ cert: of.certificate.pem, key: reveal(of.key) });
  const server = createServer(files(pair), (request, response) => {
    hook.probes += 1;
    const { url = '' } = request;
    const isKnown = url === '/readyz' || hook.accepted(url);
    response.writeHead(isKnown ? hook.status : 404).end('x');
  });
  const port = await listen(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const hook: Hook = {
    port,
    status: 200,
    probes: 0,
    accepted: (path) => path === '/mutate',
    use: (other) => server.setSecureContext(files(other)),
  };
  return hook;
}

export function slice(world: World, endpoints: object[] | null, ports: object[] | null, index = 1): void {
  const metadata = { labels: { 'kubernetes.io/service-name': 'hook' } };
  const path = paths.endpointSlices(namespace, `hook-${index}`);
  world.store.put(path, { addressType: 'IPv4', metadata, endpoints, ports });
}

export function endpoints(
  world: World,
  hooks: readonly { readonly port: number; readonly ready?: boolean }[],
): void {
  for (const [index, { port, ready }] of hooks.entries()) {
    const endpoint = { addresses: ['127.0.0.1'], conditions: { ready } };
    slice(world, [endpoint], [{ name: 'https', port }], index + 1);
  }
}

export function put(world: World, ...authorities: Pair[]): void {
  const ca = authorities.map(({ certificate }) => certificate.pem).join('');
  world.put('webhook', { 'ca.crt': ca });
}

export async function start(
  t: Test,
  world: World,
  text = fileText(),
  configuration: Partial<Configuration> = {},
) {
  const dir = t.testdir();
  mkdirSync(join(dir, 'config'));
  const file = join(dir, 'config', 'webhooks.yaml');
  const write = (now: string): void => {
    writeFileSync(`${file}.new`, now);
    renameSync(`${file}.new`, file);
  };
  write(text);
  const ending = new AbortController();
  const webhooks = await liveWebhooks(file, world.context().log);
  t.teardown(() => webhooks.close());
  const context = world.context({
    signal: ending.signal,
    webhooks,
    configuration: { webhookConfiguration: name, ...configuration },
    // Pauses while something is unsettled, and after writes, are shorter than in a real cluster.
    shortened: (ms) => (ms <= 60_000 ? 20 : ms),
  });
  const running = lead(webhookConfiguration, context);
  const end = async (): Promise<void> => {
    ending.abort(new Error('deposed'));
    await running;
  };
  t.teardown(end);
  const state = async (wanted: string): Promise<void> => {
    const series = `archwright_webhook_configuration{state="${wanted}"} 1`;
    await until(async () => (await context.metrics.render()).includes(series), `state ${wanted}`);
  };
  return { write, end, state };
}

/** A CA, its webhook, an empty configuration and the Secret. The Service has no endpoints yet. */
export async function withHook(t: Test, names: readonly string[] = subject.names) {
  const world = await createWorld(t);
  const a = await issueAuthority(validity);
  const hook = await startHook(t, await issueLeaf(a, { ...subject, names }, validity));
  put(world, a);
  world.store.put(path, {});
  return { world, a, hook };
}

export const logged = (world: World, text: string): Promise<void> =>
  world.store.until(() => world.log.join('').includes(text), text);
export const get = (world: World): WebhookConfiguration | undefined => world.store.get(path);
export const policy = (world: World): string | undefined => get(world)?.webhooks?.[0]?.failurePolicy;
export const bundleIds = (world: World): string[] | undefined => {
  const now = get(world);
  return now && readCaBundles(now)[0]?.map(({ id }) => id);
};
