/**
 * The metrics of a replica, through the API server (`pods/proxy`). A pod asks replicas directly: control planes
 * of managed clusters often cannot reach the ports of pods.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIPv6 } from 'node:net';
import { readBody } from '../../src/http/body.ts';
import { openExchange } from '../../src/http/exchange.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { messageOf } from '../../src/names/printable.ts';
import type { Kubernetes } from '../wiring/kubernetes.ts';
import type { Replica } from './replicas.ts';

interface Unread {
  readonly why: string;
}

type Target = Pick<Replica, 'namespace' | 'name' | 'address' | 'isRunning' | 'metrics'>;

export type Scrape = (replica: Target, signal: AbortSignal) => Promise<Samples | Unread>;

/** A page of a controller has some 60 KiB. */
const maxPageBytes = 4 * 1024 * 1024;
const timeoutMs = 5000;

export function createScrape({ client, podNamespace }: Pick<Kubernetes, 'client' | 'podNamespace'>): Scrape {
  const read = podNamespace === undefined ? readThrough(client) : readDirectly;
  return async (replica, caller) => {
    if (replica.metrics === undefined) return { why: 'it has no port named metrics' };
    if (!replica.isRunning || replica.address === undefined) return { why: 'it does not run' };
    try {
      const signal = AbortSignal.any([caller, AbortSignal.timeout(timeoutMs)]);
      return new Samples(await read(replica, signal));
    } catch (error) {
      caller.throwIfAborted();
      return { why: messageOf(error) };
    }
  };
}

function readThrough(client: KubeClient): typeof readDirectly {
  return ({ namespace, name, metrics }, signal) => {
    const target = `${metrics?.isTls ? 'https:' : ''}${name}:${metrics?.port ?? ''}`;
    const path = `${paths.pods(namespace)}/${target}/proxy/metrics`;
    return client.text(path, { signal, maxBytes: maxPageBytes });
  };
}

/** Does not verify the certificate, like the kubelet's probes: nothing on the page is secret. */
async function readDirectly({ address = '', metrics }: Target, signal: AbortSignal): Promise<string> {
  const isTls = metrics?.isTls === true;
  const host = isIPv6(address) ? `[${address}]` : address;
  const url = new URL(`${isTls ? 'https' : 'http'}://${host}:${metrics?.port ?? 0}/metrics`);
  const pool = isTls ? new HttpsAgent({ rejectUnauthorized: false }) : new HttpAgent();
  const limits = { dialMs: timeoutMs, totalMs: timeoutMs };
  const request = { method: 'GET', url, headers: {}, pool, limits, repeatable: true } as const;
  const response = await openExchange(request, signal);
  const page = (await readBody(response, maxPageBytes)).toString('utf8');
  if (response.status !== 200) throw new Error(`${url.host} answered ${response.status}`);
  return page;
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/gy;

/** Our longest line has about 200 characters. */
const maxLine = 2048;

/** The samples of a page. Other lines are ignored. */
export function parseSamples(text: string): readonly Sample[] {
  return text.split('\n').flatMap((each) => {
    if (each.length > maxLine) return [];
    const [, name, labels = '', value = ''] = line.exec(each) ?? [];
    return name === undefined ? [] : [{ name, labels: labelsOf(labels), value: Number(value) }];
  });
}

function labelsOf(text: string): Sample['labels'] {
  const found = [...text.matchAll(label)].map(([, name = '', value = '']) => [
    name,
    value.replaceAll(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter)),
  ]);
  return Object.fromEntries(found) as Sample['labels'];
}

export class Samples {
  readonly #samples: readonly Sample[];

  constructor(page: string) {
    this.#samples = parseSamples(page);
  }

  all(name: string): readonly Sample[] {
    return this.#samples.filter((sample) => sample.name === name);
  }

  value(name: string, labels: Sample['labels'] = {}): number | undefined {
    const wanted = Object.entries(labels);
    return this.all(name).find((sample) => wanted.every(([key, text]) => sample.labels[key] === text))?.value;
  }

  /** A label of the only sample of a metric. */
  label(name: string, key: string): string | undefined {
    return this.all(name)[0]?.labels[key];
  }

  /** The values above 0, by a label. */
  counts(name: string, key: string): Readonly<Record<string, number>> {
    const positive = this.all(name).filter(({ value }) => value > 0);
    return Object.fromEntries(positive.map(({ labels, value }) => [labels[key] ?? '', value]));
  }
}
