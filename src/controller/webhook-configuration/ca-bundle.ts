/** `caBundle`: whom the API server trusts as a webhook. */
import { distinct, readCertificates, writeCertificates, type Certificate } from '../certificates/pem.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import type { Webhook } from './webhooks-file.ts';

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[];
}

/** The bundles of a configuration, one for each webhook; `undefined` for one that is absent or cannot be read. */
export function readCaBundles(
  configuration: WebhookConfiguration,
): readonly (readonly Certificate[] | undefined)[] {
  return (configuration.webhooks ?? []).map((webhook) => readCaBundle(webhook));
}

/** The bundle of one webhook. */
export function readCaBundle(webhook: Webhook): readonly Certificate[] | undefined {
  const { caBundle: text } = webhook.clientConfig;
  return text === undefined ? undefined : readCertificates(Buffer.from(text, 'base64').toString('utf8'));
}

/** The value of `caBundle`. */
export function writeCaBundle(certificates: readonly Certificate[]): string {
  return Buffer.from(writeCertificates(certificates)).toString('base64');
}

/** More never help: each is the issuer of what a webhook may still show. */
const maxExtra = 4;

/** What a bundle trusts beyond another one and is still valid: what the API server would stop to trust. */
export function extraOf(
  bundle: readonly Certificate[] | undefined,
  wanted: readonly Certificate[],
  now: number,
): readonly Certificate[] {
  const extra = (bundle ?? []).filter(
    ({ id, to, x509 }) => x509.ca && now < to && !wanted.some((each) => each.id === id),
  );
  return distinct(extra).slice(0, maxExtra);
}
