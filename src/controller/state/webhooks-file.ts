/**
 * The webhooks of a MutatingWebhookConfiguration (admissionregistration.k8s.io/v1), and the file with the
 * wanted ones: the YAML list `webhooks`. The API server's defaults are added, so the two can be compared.
 */
import { dirname } from 'node:path';
import type {
  AdmissionregistrationV1ServiceReference,
  AdmissionregistrationV1WebhookClientConfig,
} from '@kubernetes/client-node';
import * as v from 'valibot';
import { parse } from 'yaml';
import { readCertificates, writeCertificates, type Certificate } from '../../certificates/pem.ts';
import { readShape } from '../../http/json.ts';
import { bareHost } from '../../http/reach/address.ts';
import { liveContent, type LiveContent } from '../../files/live.ts';
import { decodeUtf8, readBounded } from '../../files/read.ts';
import type { Json, KubeObject } from '../../kube/api/objects.ts';
import type { Log } from '../../telemetry/log.ts';

/** One webhook: the fields that matter here, and all others as they are. */
export interface Webhook {
  readonly name: string;
  readonly clientConfig: ClientConfig;
  readonly failurePolicy?: string;
  readonly [field: string]: unknown;
}

export type ClientConfig = Json<AdmissionregistrationV1WebhookClientConfig>;
export type ServiceReference = Json<AdmissionregistrationV1ServiceReference>;

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[];
}

/** The file cannot be used; the message says where and why. */
class WebhooksFileError extends Error {
  override readonly name = 'WebhooksFileError';
}

/** A webhook with all its selectors and match conditions (64 at most, of 1 KiB) is some kilobytes. */
const maxFileBytes = 256 * 1024;
const maxWebhooks = 20;

export interface LiveWebhooks extends Pick<LiveContent<readonly Webhook[]>, 'current' | 'problem' | 'close'> {
  onChange(listener: () => void): void;
}

/** Reads the file, and again after each change. @returns its webhooks: the last good ones; `undefined` before */
export async function liveWebhooks(path: string, log: Log): Promise<LiveWebhooks> {
  const listeners: (() => void)[] = [];
  const live = await liveContent({
    dirs: [dirname(path)],
    read: async () =>
      parseWebhooks(decodeUtf8(await readBounded(path, { maxBytes: maxFileBytes }), path), path),
    fingerprint: (webhooks) => JSON.stringify(webhooks),
    onChange: () => {
      for (const listener of listeners) listener();
    },
    onProblem: ({ message }) =>
      log.error({ problem: message }, 'the webhooks file cannot be used; the last good one stays in force'),
    log,
  });
  return { ...live, onChange: (listener) => void listeners.push(listener) };
}

const service = v.object({
  namespace: v.string(),
  name: v.string(),
  path: v.exactOptional(v.string()),
  port: v.optional(v.pipe(v.number(), v.integer()), 443),
});

const isHttps = (url: string): boolean => URL.canParse(url) && url.startsWith('https://');

/** Defaults of admissionregistration.k8s.io/v1 (Kubernetes API reference, MutatingWebhook). */
const webhook = v.looseObject({
  name: v.pipe(v.string(), v.nonEmpty()),
  clientConfig: v.pipe(
    v.object({
      url: v.exactOptional(v.pipe(v.string(), v.check(isHttps, 'must be an https URL'))),
      service: v.exactOptional(service),
    }),
    v.check(
      ({ url, service: named }) => (url === undefined) !== (named === undefined),
      'needs url or service',
    ),
  ),
  failurePolicy: v.optional(v.string(), 'Fail'),
  matchPolicy: v.optional(v.string(), 'Equivalent'),
  namespaceSelector: v.optional(v.looseObject({}), {}),
  objectSelector: v.optional(v.looseObject({}), {}),
  reinvocationPolicy: v.optional(v.string(), 'Never'),
  timeoutSeconds: v.optional(v.number(), 10),
  rules: v.exactOptional(v.array(v.looseObject({ scope: v.optional(v.string(), '*') }))),
});

const file = v.object({
  webhooks: v.pipe(
    v.array(webhook),
    v.maxLength(maxWebhooks),
    v.check(
      (all) => new Set(all.map(({ name }) => name)).size === all.length,
      'has two webhooks of one name',
    ),
  ),
});

/** @throws WebhooksFileError */
export function parseWebhooks(text: string, path: string): readonly Webhook[] {
  const refuse = (where: string, problem: string): Error =>
    new WebhooksFileError(`${path}: ${where === '' ? 'the file' : where} ${problem}`);
  let document: unknown;
  try {
    // Warnings would be lines of standard error that are not the log's.
    document = parse(text, { logLevel: 'error' });
  } catch (error) {
    throw refuse('', `is not YAML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`);
  }
  return readShape(file, document, refuse).webhooks;
}

/** DNS names and IP addresses by which the API server calls these webhooks, for their certificate. */
export function webhookNamesOf(webhooks: readonly Webhook[]): readonly string[] {
  const names = webhooks.flatMap(({ clientConfig: { service, url } }) => {
    if (service) {
      const name = `${service.name}.${service.namespace}.svc`;
      return [name, `${name}.cluster.local`];
    }
    return url === undefined ? [] : [bareHost(new URL(url))];
  });
  return [...new Set(names)];
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
