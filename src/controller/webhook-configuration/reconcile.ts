/** Compares webhook configuration, file, Secret and webhooks, and makes at most one change. */
import type { LiveContent } from '../../files/live.ts';
import { ignoring, isCode } from '../../kube/api/errors.ts';
import type { Secret } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { Leading } from '../leadership/leading.ts';
import { readCaBundle, type WebhookConfiguration } from './ca-bundle.ts';
import { decideWebhooks } from './decide.ts';
import { placeOf, type Endpoints } from './endpoints.ts';
import { showState } from './metrics.ts';
import { withToken, type PathSecret } from './path-secret.ts';
import { WebhookAvailability, type Availability } from './webhook-availability.ts';
import type { Webhook } from './webhooks-file.ts';
import { Writer } from './write.ts';
import { messageOf } from '../../names/printable.ts';

/** Pauses for changes that no watch reports. */
const pauses = {
  settled: 5 * 60_000,
  /** A webhook does not answer, or an old authority or path is still in use. */
  unsettled: 2000,
  /** For a webhook outside of the cluster. */
  byUrl: 10_000,
};

interface WebhookConfigurationParts {
  readonly name: string;
  /** Path of the Secret of the webhook's certificate, with the authorities for `caBundle`. */
  readonly secretPath: string;
  readonly file: LiveContent<readonly Webhook[]>;
  readonly endpoints: Endpoints;
  /** Makes the path unguessable; `undefined`: the paths are those of the file. */
  readonly pathSecret: PathSecret | undefined;
}

export class WebhookConfigurationReconciler {
  readonly #leading: Leading;
  readonly #parts: WebhookConfigurationParts;
  readonly #availability: WebhookAvailability;
  readonly #writer: Writer;
  readonly #show: ReturnType<typeof showState>;

  constructor(leading: Leading, parts: WebhookConfigurationParts) {
    this.#leading = leading;
    this.#parts = parts;
    this.#availability = new WebhookAvailability(parts.endpoints, leading.clock);
    this.#writer = new Writer(leading, parts.name);
    this.#show = showState(leading, parts.name);
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
    const { name, secretPath, file, pathSecret } = this.#parts;
    const { serverNow, configuration } = this.#leading;
    const path = paths.mutatingWebhookConfigurations(name);
    const found = await this.#find<WebhookConfiguration>(path, signal);
    const actual = found?.webhooks ?? [];
    // First: webhooks start when the Secret is there.
    const secretPart = await pathSecret?.reconcile(actual);
    if (found === undefined) {
      this.#show('missing');
      return unchanged;
    }
    const inFile = file.current();
    if (inFile === undefined) {
      this.#show('no-file', { problem: file.problem()?.message });
      return unchanged;
    }
    const wanted = secretPart ? inFile.map((each) => withToken(each, secretPart.token)) : inFile;
    const secret = await this.#find<Secret>(secretPath, signal);
    const bundle = readCaBundle(secret?.data?.['ca.crt']);
    if (bundle === undefined) {
      this.#show('no-authority');
      return unchanged;
    }
    const places = await this.#availability.observe(wanted, bundle, signal);
    const availability = ({ clientConfig }: Webhook): Availability => {
      const place = places.get(placeOf(clientConfig));
      if (place === undefined) throw new TypeError('the webhook was not observed');
      return place;
    };
    const absenceMs = configuration().webhookAbsenceTime;
    const decided = await decideWebhooks({
      wanted,
      actual,
      bundle,
      availability,
      absenceMs,
      now: serverNow(),
    });
    // An aborted probe has no result.
    signal.throwIfAborted();
    const wrote = await this.#writer.write(found, decided.webhooks);
    const { waiting, relaxed, reason, extra, moving } = decided;
    if (waiting.length > 0) this.#show('waiting', { webhooks: waiting, reason });
    else if (relaxed.length > 0) this.#show('relaxed', { webhooks: relaxed });
    else this.#show('in-force');

    const isUnsettled = waiting.length > 0 || relaxed.length > 0 || extra || moving;
    const isByUrl = wanted.some(({ clientConfig }) => clientConfig.url !== undefined);
    const pauseMs = isUnsettled ? pauses.unsettled : isByUrl ? pauses.byUrl : pauses.settled;
    const absences = [...places.values()].flatMap(({ absentMs }) => absentMs ?? []);
    const untilGone = absences.filter((ms) => ms < absenceMs).map((ms) => absenceMs - ms);
    return { wrote, nextMs: Math.min(pauseMs, secretPart?.nextMs ?? Infinity, ...untilGone) };
  }

  #find<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
    return ignoring('not-found', this.#leading.client.get<T>(path, { signal }));
  }
}
