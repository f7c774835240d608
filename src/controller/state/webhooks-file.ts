/**
 * The file with the wanted webhooks: the YAML list `webhooks` of a MutatingWebhookConfiguration
 * (admissionregistration.k8s.io/v1). The API server's defaults are added, so the two can be compared.
 */
import { dirname } from 'node:path';
import { parse } from 'yaml';
import { bareHost } from '../../http/reach/address.ts';
import { isRecord } from '../../names/values.ts';
import { liveContent, type LiveContent } from '../../files/live.ts';
import { decodeUtf8, readBounded } from '../../files/read.ts';
import type { Log } from '../../telemetry/log.ts';

/** One webhook: the fields that matter here, and all others as they are. */
export interface Webhook {
  readonly name: string;
  readonly clientConfig: ClientConfig;
  readonly failurePolicy?: string;
  readonly [field: string]: unknown;
}

export interface ClientConfig {
  readonly url?: string;
  readonly service?: ServiceReference;
  /** Base64 of PEM. */
  readonly caBundle?: string;
}

export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly path?: string;
  readonly port?: number;
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

/**
 * Reads the file, and again after each change. @param pollMs how often, whatever its directory reports
 * @returns its webhooks: the last good ones; `undefined` before
 */
export async function liveWebhooks(path: string, log: Log, pollMs?: number): Promise<LiveWebhooks> {
  const listeners: (() => void)[] = [];
  const live = await liveContent({
    dirs: [dirname(path)],
    read: () => readWebhooksFile(path),
    fingerprint: (webhooks) => JSON.stringify(webhooks),
    onChange: () => {
      for (const listener of listeners) listener();
    },
    onProblem: ({ message }) =>
      log.error({ problem: message }, 'the webhooks file cannot be used; the last good one stays in force'),
    pollMs,
    log,
  });
  return {
    current: () => live.current(),
    problem: () => live.problem(),
    onChange: (listener) => void listeners.push(listener),
    close: () => live.close(),
  };
}

/** @throws FileError if it cannot be read, WebhooksFileError if its content is wrong */
async function readWebhooksFile(path: string): Promise<readonly Webhook[]> {
  return parseWebhooks(decodeUtf8(await readBounded(path, { maxBytes: maxFileBytes }), path), path);
}

/** @throws WebhooksFileError */
export function parseWebhooks(text: string, path: string): readonly Webhook[] {
  const refuse = (why: string): never => {
    throw new WebhooksFileError(`${path}: ${why}`);
  };
  let document: unknown;
  try {
    // Warnings would be lines of standard error that are not the log's.
    document = parse(text, { logLevel: 'error' });
  } catch (error) {
    return refuse(`is not YAML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`);
  }
  const list = isRecord(document) ? document['webhooks'] : undefined;
  if (!Array.isArray(list)) return refuse('has no list "webhooks"');
  if (list.length > maxWebhooks) return refuse(`has more than ${maxWebhooks} webhooks`);
  const webhooks = list.map((each: unknown, index) =>
    completed(each, (why) => refuse(`webhooks[${index}] ${why}`)),
  );
  const names = new Set(webhooks.map(({ name }) => name));
  return names.size === webhooks.length ? webhooks : refuse('has two webhooks of one name');
}

function completed(given: unknown, refuse: (why: string) => never): Webhook {
  if (!isRecord(given)) return refuse('is not an object');
  const { name, rules } = given;
  if (typeof name !== 'string' || name === '') return refuse('has no name');
  return {
    // Defaults of admissionregistration.k8s.io/v1 (Kubernetes API reference, MutatingWebhook).
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    reinvocationPolicy: 'Never',
    timeoutSeconds: 10,
    ...given,
    ...(Array.isArray(rules) && {
      rules: rules.map((rule: unknown) => (isRecord(rule) ? { scope: '*', ...rule } : rule)),
    }),
    name,
    clientConfig: clientConfig(given['clientConfig'], refuse),
  };
}

function clientConfig(given: unknown, refuse: (why: string) => never): ClientConfig {
  const { url, service } = isRecord(given) ? given : {};
  if ((url === undefined) === (service === undefined)) {
    return refuse('needs either clientConfig.url or clientConfig.service');
  }
  if (url !== undefined) {
    if (typeof url !== 'string' || !URL.canParse(url) || !url.startsWith('https://')) {
      return refuse('needs an https URL as clientConfig.url');
    }
    return { url };
  }
  const { namespace, name, path, port } = isRecord(service) ? service : {};
  if (typeof namespace !== 'string' || typeof name !== 'string') {
    return refuse('needs namespace and name in clientConfig.service');
  }
  if (path !== undefined && typeof path !== 'string') return refuse('has a path that is not a string');
  if (port !== undefined && !Number.isInteger(port)) return refuse('has a port that is not a number');
  const usual = { namespace, name, port: (port as number | undefined) ?? 443 };
  return { service: { ...usual, ...(path !== undefined && { path }) } };
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
