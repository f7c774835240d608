/** `caBundle`: the authorities that the API server trusts for a webhook. */
import type { KubeObject } from '../../kube/api/objects.ts';
import { distinct, readCertificates, writeCertificates, type Certificate } from '../../certificates/pem.ts';
import type { Webhook } from './webhooks-file.ts';

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[];
}

/** The bundles of a configuration, one for each webhook; `undefined`: missing or unreadable. */
export function readCaBundles({ webhooks = [] }: WebhookConfiguration) {
  return webhooks.map(({ clientConfig }) => readCaBundle(clientConfig.caBundle));
}

/** @param text base64 of PEM: `caBundle`, or a value in a Secret */
export function readCaBundle(text: string | undefined): readonly Certificate[] | undefined {
  return text === undefined ? undefined : readCertificates(Buffer.from(text, 'base64').toString('utf8'));
}

export function writeCaBundle(certificates: readonly Certificate[]): string {
  return Buffer.from(writeCertificates(certificates)).toString('base64');
}

/** More do not help: each one is kept because a webhook may still show a certificate of it. */
const maxExtra = 4;

/** The valid authorities of a bundle that another one lacks: the API server would stop trusting them. */
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
