/** Compares webhook configuration, file, Secret and webhooks, and makes at most one change. */
import { ignoring, isCode } from '../../../kube/api/errors.ts';
import type { Secret } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { readCaBundle, type WebhookConfiguration } from '../../state/ca-bundle.ts';
import { decideWebhooks } from './decide.ts';
import type { Endpoints } from './endpoints.ts';
import { withToken, type PathSecret } from './path-secret.ts';
import { createProbe } from './probes.ts';
import type { LiveWebhooks } from '../../state/webhooks-file.ts';
import { createWriter } from './write.ts';
import { gauge, itemCounts } from '../../../telemetry/metrics.ts';
import { messageOf } from '../../../names/printable.ts';

/** Each state, and its line in the log. */
const sentences = {
  'in-force': 'the webhook configuration is up to date',
  waiting: 'a webhook is not in force, because it does not answer',
  missing: 'the webhook configuration does not exist; run helm upgrade, or create it',
  'no-file': 'the webhooks file cannot be used',
  'no-authority': 'the Secret of the webhook has no authority that could be its caBundle',
  failed: 'the webhook configuration cannot be updated; trying again',
} as const;
type ConfigurationState = keyof typeof sentences;

export const webhookConfigurationState = gauge(
  'archwright_webhook_configuration',
  'Set to 1 for the current state, by the leader.',
  { state: Object.keys(sentences) },
);

/** @returns shows a state; the log has one line for each change */
function showState({ metrics, log }: Pick<LeaderContext, 'metrics' | 'log'>, name: string) {
  const show = itemCounts(metrics, webhookConfigurationState);
  let lastLine = '';
  return (state: ConfigurationState, details: object = {}): void => {
    show([state], () => [{ state }]);
    const line = JSON.stringify([state, details]);
    if (line === lastLine) return;
    lastLine = line;
    const level = state === 'in-force' ? 'info' : 'warn';
    log[level]({ name, state, ...details }, sentences[state]);
  };
}

/** Pauses for changes that no watch reports. */
const pauses = {
  settled: 5 * 60_000,
  /** A webhook does not answer, or an old authority or path is still in use. */
  unsettled: 2000,
};

interface WebhookConfigurationParts {
  readonly name: string;
  /** Path of the Secret of the webhook's certificate, with the authorities for `caBundle`. */
  readonly secretPath: string;
  readonly webhooks: LiveWebhooks;
  readonly endpoints: Endpoints;
  /** Makes the path unguessable; `undefined`: the paths are those of the file. */
  readonly pathSecret: PathSecret | undefined;
}

export class WebhookConfigurationReconciler {
  readonly #leader: LeaderContext;
  readonly #parts: WebhookConfigurationParts;
  readonly #write: ReturnType<typeof createWriter>;
  readonly #show: ReturnType<typeof showState>;

  constructor(leader: LeaderContext, parts: WebhookConfigurationParts) {
    this.#leader = leader;
    this.#parts = parts;
    this.#write = createWriter(leader, parts.name);
    this.#show = showState(leader, parts.name);
  }

  /** @returns whether anything had to be written, and when to look again, milliseconds from now */
  async reconcile(signal: AbortSignal): Promise<{ readonly wrote: boolean; readonly nextMs: number }> {
    try {
      return await this.#reconcile(signal);
    } catch (error) {
      // After a conflict, the retry reads the object again.
      if (!signal.aborted && !isCode(error, 'conflict')) this.#show('failed', { problem: messageOf(error) });
      throw error;
    }
  }

  async #reconcile(signal: AbortSignal) {
    const unchanged = { wrote: false, nextMs: pauses.settled };
    const { name, secretPath, webhooks, endpoints, pathSecret } = this.#parts;
    const path = paths.mutatingWebhookConfigurations(name);
    const found = await this.#find<WebhookConfiguration>(path, signal);
    const actual = found?.webhooks ?? [];
    // First: webhooks start when the Secret is there.
    const secretPart = await pathSecret?.(actual);
    if (found === undefined) {
      this.#show('missing');
      return unchanged;
    }
    const inFile = webhooks.current();
    if (inFile === undefined) {
      this.#show('no-file', { problem: webhooks.problem()?.message });
      return unchanged;
    }
    const wanted = secretPart ? inFile.map((each) => withToken(each, secretPart.token)) : inFile;
    const secret = await this.#find<Secret>(secretPath, signal);
    const isInjected = this.#leader.configuration().certificates === 'serviceCa';
    const bundle = isInjected
      ? // The service CA appends its certificates to the webhook's, and writes no ca.crt.
        readCaBundle(secret?.data?.['tls.crt'])?.filter(({ x509 }) => x509.ca)
      : readCaBundle(secret?.data?.['ca.crt']);
    if (bundle === undefined || bundle.length === 0) {
      this.#show('no-authority');
      return unchanged;
    }
    endpoints.keep(wanted.map(({ clientConfig }) => clientConfig));
    const probe = createProbe(endpoints, bundle, signal);
    const now = this.#leader.serverNow();
    const decided = await decideWebhooks({ wanted, actual, bundle, isInjected, probe, now });
    // An aborted probe has no result.
    signal.throwIfAborted();
    const wrote = await this.#write(found, decided.webhooks);
    const { waiting, reason, extra, moving } = decided;
    if (waiting.length > 0) this.#show('waiting', { webhooks: waiting, reason });
    else this.#show('in-force');

    const pauseMs = waiting.length > 0 || extra || moving ? pauses.unsettled : pauses.settled;
    return { wrote, nextMs: Math.min(pauseMs, secretPart?.nextMs ?? Infinity) };
  }

  #find<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
    return ignoring('not-found', this.#leader.client.get<T>(path, { signal }));
  }
}
