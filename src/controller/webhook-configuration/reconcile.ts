/** Compares the webhook configuration with the file, the Secret and the webhooks, and makes at most one change. */
import type { LiveContent } from '../../files/live.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { Secret } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import { readCertificates, type Certificate } from '../certificates/pem.ts';
import type { Leading } from '../leadership/leading.ts';
import type { WebhookConfiguration } from './ca-bundle.ts';
import { decideWebhooks, type Decided } from './decide.ts';
import type { Endpoints } from './endpoints.ts';
import type { ShowState } from './metrics.ts';
import {
  createWebhookAvailability,
  type Observed,
  type WebhookAvailability,
} from './webhook-availability.ts';
import type { Webhook } from './webhooks-file.ts';
import { createWriter, type Writer } from './write.ts';

/** Pauses for changes that no watch reports. */
const pauses = {
  settled: 5 * 60_000,
  /** A webhook does not answer, or an old authority is still in use. */
  unsettled: 2000,
  /** For a webhook outside of the cluster. */
  byUrl: 10_000,
};

export interface WebhookConfigurationParts {
  readonly name: string;
  /** The webhook's certificate, with the authorities for `caBundle`. */
  readonly secret: { readonly namespace: string; readonly name: string };
  readonly file: LiveContent<readonly Webhook[]>;
  readonly endpoints: Endpoints;
  readonly show: ShowState;
}

export interface WebhookConfigurationOutcome {
  /** Whether anything had to be written. */
  readonly wrote: boolean;
  /** When to look again, milliseconds from now. */
  readonly nextMs: number;
}

const nothingToDo: WebhookConfigurationOutcome = { wrote: false, nextMs: pauses.settled };

export class WebhookConfigurationReconciler {
  readonly #leading: Leading;
  readonly #parts: WebhookConfigurationParts;
  readonly #availability: WebhookAvailability;
  readonly #writer: Writer;

  constructor(leading: Leading, parts: WebhookConfigurationParts) {
    const { client, signal, clock, log, step } = leading;
    this.#leading = leading;
    this.#parts = parts;
    this.#availability = createWebhookAvailability({ endpoints: parts.endpoints, clock });
    this.#writer = createWriter({ client, name: parts.name, signal, log, step });
  }

  /** @throws KubeError */
  async reconcile(signal: AbortSignal): Promise<WebhookConfigurationOutcome> {
    const { name, secret, file, endpoints, show } = this.#parts;
    const { serverNow, configuration } = this.#leading;
    const path = paths.mutatingWebhookConfigurations(name);
    const found = await this.#find<WebhookConfiguration>(path, signal);
    if (found === undefined) {
      show('missing');
      return nothingToDo;
    }
    const wanted = file.current();
    if (wanted === undefined) {
      show('no-file', { problem: file.problem()?.message });
      return nothingToDo;
    }
    const bundle = authoritiesIn(
      await this.#find<Secret>(paths.secrets(secret.namespace, secret.name), signal),
    );
    if (bundle === undefined) {
      show('no-authority');
      return nothingToDo;
    }
    endpoints.keep(wanted.map(({ clientConfig }) => clientConfig));
    const observed = await this.#availability.observe(wanted, bundle, signal);
    const decided = await decideWebhooks({
      wanted,
      actual: found.webhooks ?? [],
      bundle,
      availability: observed.of,
      absenceMs: configuration().webhookAbsenceTime,
      now: serverNow(),
    });
    // An aborted probe says nothing about the webhook.
    signal.throwIfAborted();
    const wrote = await this.#writer.write(found, decided.webhooks);
    this.#show(decided, observed);
    return { wrote, nextMs: this.#nextMs(wanted, decided, observed) };
  }

  #find<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
    return ignoring('not-found', this.#leading.client.get<T>(path, { signal }));
  }

  #show({ waiting, relaxed }: Decided, observed: Observed): void {
    const { show } = this.#parts;
    const [first] = waiting;
    if (first !== undefined) show('waiting', { webhooks: waiting, reason: observed.why(first) });
    else if (relaxed.length > 0) show('relaxed', { webhooks: relaxed });
    else show('in-force');
  }

  #nextMs(wanted: readonly Webhook[], { waiting, relaxed, extra }: Decided, observed: Observed): number {
    const absenceMs = this.#leading.configuration().webhookAbsenceTime;
    const isUnsettled = waiting.length > 0 || relaxed.length > 0 || extra;
    const isByUrl = wanted.some(({ clientConfig }) => clientConfig.url !== undefined);
    const absences = wanted.flatMap((webhook) => observed.of(webhook).absentMs ?? []);
    return Math.min(
      isUnsettled ? pauses.unsettled : isByUrl ? pauses.byUrl : pauses.settled,
      ...absences.filter((ms) => ms < absenceMs).map((ms) => absenceMs - ms),
    );
  }
}

function authoritiesIn(secret: Secret | undefined): readonly Certificate[] | undefined {
  const text = secret?.data?.['ca.crt'];
  return text === undefined ? undefined : readCertificates(Buffer.from(text, 'base64').toString('utf8'));
}
