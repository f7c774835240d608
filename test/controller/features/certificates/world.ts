/** A cluster with Secrets, a leader that a test can stop at any step, and clocks that it sets. */
import { steppingClient, type Step } from '../../../support/steps.ts';
import type { Test } from 'tap';
import { readAuthorities } from '../../../../src/certificates/authorities.ts';
import {
  leafNames,
  readLeaf,
  type LeafName,
} from '../../../../src/controller/features/certificates/leaves.ts';
import { createReconciler } from '../../../../src/controller/features/certificates/reconcile.ts';
import type { Times } from '../../../../src/certificates/clock-agreement.ts';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import type { LiveWebhooks } from '../../../../src/controller/state/webhooks-file.ts';
import { systemClock } from '../../../../src/async/clock.ts';
import { wait } from '../../../../src/async/wait.ts';
import { defaultConfiguration } from '../../../../src/policy/configuration/configuration.ts';
import type { Configuration } from '../../../../src/policy/settings/all.ts';
import { captureLog } from '../../../support/captured.ts';
import { createMetrics } from '../../../../src/telemetry/metrics.ts';
import { connectedStore } from '../../../kube/support.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { neverAborted } from '../../../support/never-aborted.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const namespace = 'archwright';

/** Lives are much shorter than a day, and long enough for every step of a rotation. */
export const times: Times = { certificateMs: 105 * minute, caMs: 8 * hour, settleMs: 10 * minute };

export const webhookNames = [
  'archwright-webhook.archwright.svc',
  'archwright-webhook.archwright.svc.cluster.local',
];

export const secretNames: Readonly<Record<LeafName | 'ca', string>> = {
  ca: 'archwright-ca',
  webhook: 'archwright-webhook-tls',
  agent: 'archwright-agent-tls',
  'webhook-client': 'archwright-webhook-client-tls',
  'controller-client': 'archwright-controller-client-tls',
};

const service = { namespace, name: 'archwright-webhook' };
const inFile: LiveWebhooks = {
  current: () => [{ name: 'pods.arch.example', clientConfig: { service } }],
  problem: () => undefined,
  onChange: () => undefined,
  close: () => Promise.resolve(),
};

export class Killed extends Error {}

export type World = Awaited<ReturnType<typeof createWorld>>;
type Name = LeafName | 'ca';
type Texts = Readonly<Record<string, string>>;

export interface LeaderOptions {
  readonly step?: Step;
  readonly signal?: AbortSignal;
  readonly webhookConfiguration?: string;
  readonly certificates?: Configuration['certificates'];
  readonly webhooks?: LiveWebhooks | undefined;
  /** Replaces pauses. Default: back-off and pauses after writes are short, others do not end. */
  readonly shortened?: (ms: number) => number;
}

export async function createWorld(t: Test) {
  let wall = Date.parse('2026-11-01T00:00:00Z');
  let own = wall;
  let monotonic = 7_000_000;
  const { store, client } = await connectedStore(t, { now: () => wall });
  const { log, lines } = captureLog('debug');
  const path = (name: Name): string => paths.secrets(namespace, secretNames[name]);
  let seenLines = 0;

  function context(
    options: LeaderOptions & { readonly configuration?: Partial<Configuration> } = {},
  ): LeaderContext {
    const configuration = {
      ...defaultConfiguration(),
      namespace,
      ...options.configuration,
    };
    const shortened = options.shortened ?? ((ms) => (ms < 2000 ? 10 : 600_000));
    return {
      namespace,
      signal: options.signal ?? neverAborted,
      client: options.step ? steppingClient(client, options.step) : client,
      configuration: () => configuration,
      webhooks: 'webhooks' in options ? options.webhooks : inFile,
      clock: {
        now: () => own,
        monotonic: () => monotonic,
        random: () => 0,
        sleep: (ms, signal) => wait(shortened(ms), signal),
        timer: (ms, action) => systemClock.timer(shortened(ms), action),
      },
      serverNow: () => wall,
      log,
      metrics: createMetrics(),
      // Not used by certificates.
    } as Partial<LeaderContext> as LeaderContext;
  }

  return {
    store,
    log: lines as readonly string[],
    /** Moves wall clock and monotonic clock. */
    advance: (ms: number): void => {
      wall += ms;
      own += ms;
      monotonic += ms;
    },
    /** Moves only the API server's wall clock. */
    jump: (ms: number): void => {
      wall += ms;
    },
    /** Moves only the controller's own wall clock. */
    jumpOwn: (ms: number): void => {
      own += ms;
    },
    now: () => wall,
    monotonic: () => monotonic,
    texts: (name: Name): Texts | undefined => {
      const found = store.get(path(name)) as { data?: Texts } | undefined;
      return found && recoded(found.data ?? {}, 'base64', 'utf8');
    },
    /** Writes a Secret as another writer would. */
    put: (name: Name, texts: Texts): void => {
      const data = recoded(texts, 'utf8', 'base64');
      store.put(path(name), { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', data });
    },
    remove: (name: Name): void => store.remove(path(name)),
    leader: (options: LeaderOptions = {}) => {
      const { webhookConfiguration, certificates = 'builtin' } = options;
      const leads = context({ ...options, configuration: { webhookConfiguration, certificates } });
      return createReconciler(leads, times);
    },
    context,
    issued: (): readonly string[] => {
      const fresh = lines.slice(seenLines).map((line) => JSON.parse(line) as Record<string, string>);
      seenLines = lines.length;
      return fresh.flatMap(({ certificate = 'ca', reason }) => (reason ? [`${certificate} ${reason}`] : []));
    },
  };
}

function recoded(texts: Texts, from: BufferEncoding, to: BufferEncoding): Texts {
  const entries = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text, from).toString(to)]);
  return Object.fromEntries(entries) as Texts;
}

/** A world with its first CA and certificates. */
export async function settled(t: Test): Promise<World> {
  const world = await createWorld(t);
  await world.leader()();
  picture(world);
  world.issued();
  return world;
}

/** A world in which a leader has just announced the next CA. */
export async function announced(t: Test, options?: LeaderOptions) {
  const world = await settled(t);
  const lead = world.leader(options);
  world.advance(rotationMs);
  await lead();
  return { world, lead };
}

/** After this time, the next CA is due. */
export const rotationMs = (times.caMs * 2) / 3 + 1000;

const lettersOf = new WeakMap<World, Map<string, string>>();

/** The whole state as text: `A`, `B`, … are authorities in the order in which they were first seen. */
export function picture(world: World): string {
  const authorities = readAuthorities(world.texts('ca') ?? {});
  if (authorities.newest === undefined) return 'nothing';
  const all = [...authorities.previous, authorities.newest.certificate];
  const letters = lettersOf.get(world) ?? new Map<string, string>();
  lettersOf.set(world, letters);
  for (const { id } of all)
    if (!letters.has(id)) letters.set(id, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[letters.size] ?? '?');
  const leaves = leafNames.map((name) => {
    const { certificate, bundle = [] } = readLeaf(world.texts(name));
    const issuer = all.find((each) => certificate?.x509.checkIssued(each.x509));
    const trusted = bundle.map(({ id }) => letters.get(id) ?? '?').sort();
    return `${letters.get(issuer?.id ?? '') ?? '?'}/${trusted.join('')}`;
  });
  const names = all.map(({ id }) => letters.get(id) ?? '?').join('');
  const key = authorities.previousSigner ? '+key' : '';
  return `${names} ${authorities.phase}${key}: ${leaves.join(' ')}`;
}

export function setWebhookBundle(world: World, name: string, ...caBundles: (string | undefined)[]): void {
  const webhooks = caBundles.map((caBundle, index) => ({
    name: `w${index}.arch.example`,
    clientConfig: {
      url: 'https://127.0.0.1/mutate',
      ...(caBundle !== undefined && { caBundle: Buffer.from(caBundle).toString('base64') }),
    },
  }));
  world.store.put(paths.mutatingWebhookConfigurations(name), {
    kind: 'MutatingWebhookConfiguration',
    webhooks,
  });
}
