/**
 * Keeps the MutatingWebhookConfiguration up to date while this replica leads: its webhooks follow the file,
 * once they answer; its `caBundle` follows the Secret of the webhook's certificate. Only the chart creates
 * the object (empty) and removes it.
 *
 * `decide.ts` has the configuration for now. `path-secret.ts` has the part of the path by which the webhook
 * recognizes the API server. Every change of the file, the Secret, the object or the endpoints leads to a
 * reconcile, which makes at most one change.
 */
import { isDeepStrictEqual } from 'node:util';
import { guardedPatch } from '../../../kube/api/change.ts';
import { ignoring, isCode } from '../../../kube/api/errors.ts';
import type { Secret } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { watchNamed } from '../../../kube/watch/reflector.ts';
import { ownNames } from '../../../names/keys.ts';
import { messageOf } from '../../../names/printable.ts';
import { gauge, itemCounts } from '../../../telemetry/metrics.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';
import { readCaBundle, type Webhook, type WebhookConfiguration } from '../../state/webhooks-file.ts';
import { applied, fieldManager } from '../../write/own-objects.ts';
import { decideWebhooks } from './decide.ts';
import { createEndpoints, createProbe } from './endpoints.ts';
import { createPathSecret, withToken } from './path-secret.ts';

const key = 'webhook-configuration';
const weekMs = 7 * 86_400_000;

/** Each state, and its line in the log. */
const sentences = {
  'in-force': 'the webhook configuration is up to date',
  waiting: 'a webhook is not in force, because it does not answer',
  missing: 'the webhook configuration does not exist; run helm upgrade, or create it',
  'no-file': 'the webhooks file cannot be used',
  'no-authority': 'the Secret of the webhook has no authority that could be its caBundle',
  failed: 'the webhook configuration cannot be updated; trying again',
} as const;

const stateGauge = gauge(
  'archwright_webhook_configuration',
  'Set to 1 for the current state, by the leader.',
  { state: Object.keys(sentences) },
);

/** Pauses for changes that no watch reports. */
const pauses = {
  settled: 5 * 60_000,
  /** A webhook does not answer, or an old authority or path is still in use. */
  unsettled: 2000,
};

/**
 * Keeps the configuration while this replica leads, if the settings name one.
 * @param pathRotationMs age at which the webhook's path is replaced
 */
export const webhookConfigurationWith = (pathRotationMs = weekMs): Feature => ({
  name: 'webhook-configuration',
  metrics: [stateGauge],
  isOn: ({ configuration, webhooks }) =>
    configuration().webhookConfiguration !== undefined && webhooks !== undefined,
  inRounds: true,
  leftovers: {
    objects: ({ webhookPathSecret: name }) => (name === undefined ? [] : [{ kind: 'Secret', name }]),
  },
  // It needs no cache, and no pod is placed before it has written.
  ready: () => Promise.resolve(),
  start: (leader, enqueue) => {
    const { client, namespace, log, clock, webhooks } = leader;
    const { webhookConfiguration: name = '', webhookPathSecret, certificates } = leader.configuration();
    const { webhookTlsSecret, serviceCaSecret } = ownNames(leader.configuration());
    const isInjected = certificates === 'serviceCa';
    const tlsSecret = isInjected ? serviceCaSecret : webhookTlsSecret;
    const onChange = (): void => enqueue(key);
    webhooks?.onChange(onChange);
    const common = { client, log, clock, onChange };
    const endpoints = createEndpoints(common);
    const trim = (): true => true;
    const path = paths.secrets(namespace);
    const watches = [
      watchNamed({ ...common, trim, path: paths.mutatingWebhookConfigurations(), name }),
      ...[tlsSecret, webhookPathSecret].flatMap((each) =>
        each === undefined ? [] : watchNamed({ ...common, trim, path, name: each }),
      ),
    ];
    const pathSecret = webhookPathSecret && createPathSecret(leader, webhookPathSecret, pathRotationMs);
    const write = createWriter(leader, name);
    const show = showState(leader, name);
    const find = <T>(at: string, signal: AbortSignal): Promise<T | undefined> =>
      ignoring('not-found', client.get<T>(at, { signal }));

    /** @returns whether anything had to be written, and when to look again, milliseconds from now */
    async function reconcile(signal: AbortSignal) {
      const unchanged = { wrote: false, nextMs: pauses.settled };
      const found = await find<WebhookConfiguration>(paths.mutatingWebhookConfigurations(name), signal);
      const actual = found?.webhooks ?? [];
      // First: webhooks start when the Secret is there.
      const secretPart = pathSecret ? await pathSecret(actual) : undefined;
      if (found === undefined) {
        show('missing');
        return unchanged;
      }
      const inFile = webhooks?.current();
      if (inFile === undefined) {
        show('no-file', { problem: webhooks?.problem()?.message });
        return unchanged;
      }
      const wanted = secretPart ? inFile.map((each) => withToken(each, secretPart.token)) : inFile;
      const { data } = (await find<Secret>(paths.secrets(namespace, tlsSecret), signal)) ?? {};
      const bundle = isInjected
        ? // The service CA appends its certificates to the webhook's, and writes no ca.crt.
          readCaBundle(data?.['tls.crt'])?.filter(({ x509 }) => x509.ca)
        : readCaBundle(data?.['ca.crt']);
      if (bundle === undefined || bundle.length === 0) {
        show('no-authority');
        return unchanged;
      }
      endpoints.keep(wanted.map(({ clientConfig }) => clientConfig));
      const probe = createProbe(endpoints, bundle, signal);
      const now = leader.serverNow();
      const decided = await decideWebhooks({ wanted, actual, bundle, isInjected, probe, now });
      // An aborted probe has no result.
      signal.throwIfAborted();
      const wrote = await write(found, decided.webhooks);
      const { waiting, reason, extra, moving } = decided;
      if (waiting.length > 0) show('waiting', { webhooks: waiting, reason });
      else show('in-force');
      const pauseMs = waiting.length > 0 || extra || moving ? pauses.unsettled : pauses.settled;
      return { wrote, nextMs: Math.min(pauseMs, secretPart?.nextMs ?? Infinity) };
    }

    return {
      keys: () => [key],
      reconcile: async (_, stopping) => {
        const { wrote, nextMs } = await reconcile(stopping).catch((error: unknown) => {
          // After a conflict, the retry reads the object again.
          if (!stopping.aborted && !isCode(error, 'conflict')) show('failed', { problem: messageOf(error) });
          throw error;
        });
        return { wrote, requeueAfterMs: nextMs };
      },
      close: () => {
        for (const each of watches) each.stop();
        endpoints.keep([]);
      },
    };
  },
});

export const webhookConfiguration = webhookConfigurationWith();

/** @returns shows a state; the log has one line for each change */
function showState({ metrics, log }: LeaderContext, name: string) {
  const show = itemCounts(metrics, stateGauge);
  let lastLine = '';
  return (state: keyof typeof sentences, details: object = {}): void => {
    show([state], () => [{ state }]);
    const line = JSON.stringify([state, details]);
    if (line === lastLine) return;
    lastLine = line;
    const level = state === 'in-force' ? 'info' : 'warn';
    log[level]({ name, state, ...details }, sentences[state]);
  };
}

/**
 * Applies the webhooks (server-side). The chart owns the object and its metadata, archwright the list
 * `webhooks`: Helm and GitOps controllers see no difference. A patch removes other writers' additions.
 * @returns replaces the webhooks of the object, and returns whether they had to be written
 */
export function createWriter(
  { client, signal, log }: Pick<LeaderContext, 'client' | 'signal' | 'log'>,
  name: string,
) {
  const path = paths.mutatingWebhookConfigurations(name);
  /**
   * The written and the resulting webhooks, if they differ. Some clusters change every webhook configuration
   * as it is written; writing again would never end.
   */
  let settledFor: { readonly meant: readonly Webhook[]; readonly got: readonly Webhook[] } | undefined;
  return async (
    { metadata, webhooks: actual = [] }: WebhookConfiguration,
    webhooks: readonly Webhook[],
  ): Promise<boolean> => {
    if (isSame(actual, webhooks)) return false;
    if (isSame(settledFor?.meant, webhooks) && isSame(settledFor?.got, actual)) return false;
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      // With the uid, a deleted object is not created again (measured: 409).
      metadata: { name, ...(metadata?.uid !== undefined && { uid: metadata.uid }) },
      webhooks,
    };
    let now = await client.patch<WebhookConfiguration>(path, applied(body), { signal });
    if (!isSame(now.webhooks ?? [], webhooks)) {
      const replace = guardedPatch(now, [{ op: 'add', path: '/webhooks', value: webhooks }]);
      now = await client.patch(path, replace, { signal, query: { fieldManager } });
    }
    settledFor = undefined;
    if (!isSame(now.webhooks ?? [], webhooks)) {
      settledFor = { meant: webhooks, got: now.webhooks ?? [] };
      log.warn(
        { name },
        'the API server, or an admission webhook, changes the webhook configuration as it is written',
      );
    }
    return true;
  };
}

/** Equal as JSON values, in any order of fields. A field that is `undefined` counts as missing. */
function isSame(a: unknown, b: unknown): boolean {
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify([value]));
  return isDeepStrictEqual(plain(a), plain(b));
}
