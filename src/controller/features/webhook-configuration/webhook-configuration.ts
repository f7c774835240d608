/**
 * Keeps the MutatingWebhookConfiguration up to date while this replica leads: its webhooks follow the file,
 * once they answer; its `caBundle` follows the Secret of the webhook's certificate. Only the chart creates
 * the object (empty) and removes it.
 *
 * `decide.ts` has the configuration for now, which `reconcile.ts` writes. `path-secret.ts` has the part of the
 * path by which the webhook recognizes the API server.
 *
 * Every change of the file, the Secret, the object or the endpoints leads to a reconcile.
 */
import { ownNames } from '../../../names/own-names.ts';
import { paths } from '../../../kube/api/paths.ts';
import { watchNamed } from '../../../kube/watch/reflector.ts';
import type { Feature } from '../../lead/feature.ts';
import { createWritePause } from '../../write/write-pause.ts';
import { Endpoints } from './endpoints.ts';
import { createPathSecret } from './path-secret.ts';
import { WebhookConfigurationReconciler, webhookConfigurationState } from './reconcile.ts';

const key = 'webhook-configuration';
const weekMs = 7 * 86_400_000;

/**
 * Keeps the configuration while this replica leads, if the settings name one.
 * @param pathRotationMs age at which the webhook's path is replaced
 */
export const webhookConfigurationWith = (pathRotationMs = weekMs): Feature => ({
  name: 'webhook-configuration',
  metrics: [webhookConfigurationState],
  isOn: ({ webhookConfiguration: name, webhooksFile }) => name !== undefined && webhooksFile !== undefined,
  inRounds: true,
  leftovers: {
    objects: ({ webhookPathSecret: name }) => (name === undefined ? [] : [{ kind: 'Secret', name }]),
  },
  // It needs no cache, and no pod is placed before it has written.
  ready: () => Promise.resolve(),
  start: (leader, enqueue) => {
    const { client, namespace, clock, log, configuration, webhooks } = leader;
    if (webhooks === undefined) throw new TypeError('no webhooks file is named');
    const { webhookConfiguration: name = '', webhookPathSecret } = configuration();
    const { webhookTlsSecret, serviceCaSecret } = ownNames(configuration());
    const tlsSecret = configuration().certificates === 'serviceCa' ? serviceCaSecret : webhookTlsSecret;
    const pauseAfterWrite = createWritePause(clock);
    const onChange = (): void => enqueue(key);
    webhooks.onChange(onChange);
    const common = { client, log, clock, onChange };
    const endpoints = new Endpoints(common);
    const secretPath = paths.secrets(namespace, tlsSecret);
    const pathSecret =
      webhookPathSecret === undefined
        ? undefined
        : createPathSecret(leader, webhookPathSecret, pathRotationMs);
    const parts = { name, secretPath, webhooks, endpoints, pathSecret };
    const work = new WebhookConfigurationReconciler(leader, parts);
    const secrets = [tlsSecret, ...(webhookPathSecret === undefined ? [] : [webhookPathSecret])];
    const trim = (): true => true;
    const watches = [
      watchNamed({ ...common, trim, path: paths.mutatingWebhookConfigurations(), name }),
      ...secrets.map((each) => watchNamed({ ...common, trim, path: paths.secrets(namespace), name: each })),
    ];
    return {
      keys: () => [key],
      reconcile: async (_, stopping) => {
        const { wrote, nextMs } = await work.reconcile(stopping);
        if (wrote) await pauseAfterWrite(stopping);
        return { requeueAfterMs: nextMs };
      },
      close: () => {
        for (const each of watches) each.stop();
        endpoints.keep([]);
      },
    };
  },
});

export const webhookConfiguration = webhookConfigurationWith();
