/**
 * Keeps the MutatingWebhookConfiguration true while this replica leads: its webhooks as the file says, and only when they
 * answer; its `caBundle` as the Secret of the webhook's certificate says. The object itself is the chart's, which creates it empty and
 * removes it; where it is missing it stays missing.
 *
 * - `webhooks-file.ts`: what should be. `ca-bundle.ts`: whom the API server trusts.
 * - `endpoints.ts`, `probe.ts`, `presence.ts`: whether the webhooks are there, and answer.
 * - `decide.ts`: what should be now. `write.ts`: writes it.
 *
 * A pass looks at everything and ends with at most one change; whatever changes (file, Secret, object, endpoints) starts one.
 */
import { dirname } from 'node:path';
import { liveContent, type LiveContent } from '../../files/live.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { Secret } from '../../kube/api/objects.ts';
import { watchNamed } from '../../kube/watch/named-watch.ts';
import { readCertificates, type Certificate } from '../certificates/pem.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createPasses, type PassOutcome } from '../reconcile/passes.ts';
import type { WebhookConfiguration } from './ca-bundle.ts';
import { decideWebhooks } from './decide.ts';
import { createEndpoints, type Endpoints } from './endpoints.ts';
import { showState, type ConfigurationState } from './metrics.ts';
import { createWebhookAvailability, type WebhookAvailability } from './webhook-availability.ts';
import { readWebhooksFile, type Webhook } from './webhooks-file.ts';
import { createWriter, type Writer } from './write.ts';
import { paths } from '../../kube/api/paths.ts';

export interface WebhookConfigurationOptions {
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
  /** How often the file is read again whatever its directory says. */
  readonly pollMs?: number;
}

/** Pauses between passes where no watch would tell. */
const pauses = {
  /** All is as it should be: only against what no watch sees. */
  calm: 5 * 60_000,
  /** A webhook does not answer, or an old authority is still in use. */
  waiting: 2000,
  /** A webhook outside of the cluster, whose absence nobody reports. */
  byUrl: 10_000,
};

/** What a pass works with. */
interface Parts {
  readonly name: string;
  readonly secretPath: string;
  readonly file: LiveContent<readonly Webhook[]>;
  readonly endpoints: Endpoints;
  readonly presences: WebhookAvailability;
  readonly writer: Writer;
  readonly say: (state: ConfigurationState, details?: object) => void;
}

interface Named {
  readonly name: string;
  readonly webhooksFile: string;
  readonly namespace: string;
}

/** Keeps the configuration while this replica leads; does nothing where none is named. */
export function webhookConfiguration(options: WebhookConfigurationOptions = {}): Feature {
  return async (leading) => {
    const { webhookConfiguration: name, webhooksFile, namespace } = leading.configuration();
    if (name === undefined || webhooksFile === undefined) return;
    if (namespace === undefined) {
      leading.log.error('the webhook configuration is not kept: the namespace of archwright is not known');
    } else await run(leading, options, { name, webhooksFile, namespace });
  };
}

async function run(
  leading: Leading,
  options: WebhookConfigurationOptions,
  { name, webhooksFile, namespace }: Named,
): Promise<void> {
  const { signal, client, clock, log } = leading;
  const { sleep, random } = options;
  const { webhookTlsSecret } = leading.configuration();
  const state = showState(leading, name);
  const passes = createPasses({
    signal,
    clock,
    sleep,
    random,
    onFailure: (problem) => state.say('failed', { problem }),
  });
  const file = await liveContent({
    dirs: [dirname(webhooksFile)],
    read: () => readWebhooksFile(webhooksFile),
    fingerprint: (webhooks) => JSON.stringify(webhooks),
    onChange: passes.kick,
    onProblem: ({ message }) =>
      log.error({ problem: message }, 'the webhooks file cannot be used; the last good one stays in force'),
    pollMs: options.pollMs,
    log,
  });
  const endpoints = createEndpoints({ client, log, clock, onChange: passes.kick });
  const common = { client, log, clock, onChange: passes.kick };
  const watches = [
    watchNamed({
      ...common,
      path: paths.mutatingWebhookConfigurations(),
      name,
    }),
    watchNamed({ ...common, path: paths.secrets(namespace), name: webhookTlsSecret }),
  ];
  const parts: Parts = {
    name,
    secretPath: paths.secrets(namespace, webhookTlsSecret),
    file,
    endpoints,
    presences: createWebhookAvailability({ endpoints, clock }),
    writer: createWriter({ client, name, signal, log, step: leading.step }),
    say: state.say,
  };

  await passes.run(() => pass(leading, parts));
  for (const each of watches) each.stop();
  endpoints.stop();
  await file.close();
  state.end();
}

async function pass(leading: Leading, parts: Parts): Promise<PassOutcome> {
  const { signal, client, serverNow } = leading;
  const { file, say } = parts;
  const nothing = { wrote: false, nextMs: pauses.calm };
  const found = await find<WebhookConfiguration>(
    client,
    paths.mutatingWebhookConfigurations(parts.name),
    signal,
  );
  if (found === undefined) {
    say('missing');
    return nothing;
  }
  const wanted = file.current();
  if (wanted === undefined) {
    say('no-file', { problem: file.problem()?.message });
    return nothing;
  }
  const bundle = authoritiesIn(await find<Secret>(client, parts.secretPath, signal));
  if (bundle === undefined) {
    say('no-authority');
    return nothing;
  }
  parts.endpoints.keep(wanted.map(({ clientConfig }) => clientConfig));
  const looked = await parts.presences.look(wanted, bundle, signal);
  const absenceMs = leading.configuration().webhookAbsenceTime;
  const decided = await decideWebhooks({
    wanted,
    actual: found.webhooks ?? [],
    bundle,
    presence: looked.of,
    absenceMs,
    now: serverNow(),
  });
  // What could not be asked to the end is not known.
  signal.throwIfAborted();
  const wrote = await parts.writer.write(found, decided.webhooks);

  const [waits] = decided.waiting;
  if (waits !== undefined) say('waiting', { webhooks: decided.waiting, reason: looked.why(waits) });
  else if (decided.relaxed.length > 0) say('relaxed', { webhooks: decided.relaxed });
  else say('in-force');
  const isUnsettled = waits !== undefined || decided.relaxed.length > 0 || decided.extra;
  const isByUrl = wanted.some(({ clientConfig }) => clientConfig.url !== undefined);
  const absences = wanted.flatMap((webhook) => looked.of(webhook).absentMs ?? []);
  return {
    wrote,
    nextMs: Math.min(
      isUnsettled ? pauses.waiting : isByUrl ? pauses.byUrl : pauses.calm,
      ...absences.filter((ms) => ms < absenceMs).map((ms) => absenceMs - ms),
    ),
  };
}

async function find<T>(client: KubeClient, path: string, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await client.get<T>(path, { signal });
  } catch (error) {
    if (error instanceof KubeError && error.code === 'not-found') return undefined;
    throw error;
  }
}

function authoritiesIn(secret: Secret | undefined): readonly Certificate[] | undefined {
  const text = secret?.data?.['ca.crt'];
  return text === undefined ? undefined : readCertificates(Buffer.from(text, 'base64').toString('utf8'));
}
