/**
 * The metrics of a replica. Outside of the cluster, the API server passes the request on (`pods/proxy`). In a
 * pod, the replica is asked directly: control planes of managed clusters often cannot reach the ports of
 * pods.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIPv6 } from 'node:net';
import { readBody } from '../../src/http/body.ts';
import { openExchange } from '../../src/http/exchange.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { messageOf } from '../../src/names/printable.ts';
import { parseSamples, Samples } from './samples.ts';
import type { Replica } from './replicas.ts';

export interface Unread {
  readonly why: string;
}

export type Scrape = (replica: Replica, signal: AbortSignal) => Promise<Samples | Unread>;

/** A page of a controller has some 60 KiB. */
const maxPageBytes = 4 * 1024 * 1024;
const timeoutMs = 5000;

/** @param how `direct`: this process is a pod of the cluster */
export function createScrape(client: KubeClient, how: 'proxy' | 'direct'): Scrape {
  const read = how === 'direct' ? readDirectly : readThrough(client);
  return async (replica, caller) => {
    if (replica.metrics === undefined) return { why: 'it has no port named metrics' };
    if (!replica.isRunning || replica.address === undefined) return { why: 'it does not run' };
    try {
      const signal = AbortSignal.any([caller, AbortSignal.timeout(timeoutMs)]);
      return new Samples(parseSamples(await read(replica, signal)));
    } catch (error) {
      caller.throwIfAborted();
      return { why: messageOf(error) };
    }
  };
}

type Read = (replica: Replica, signal: AbortSignal) => Promise<string>;

function readThrough(client: KubeClient): Read {
  return ({ namespace, name, metrics }, signal) => {
    const target = `${metrics?.isTls ? 'https:' : ''}${name}:${metrics?.port ?? ''}`;
    return client.text(`${paths.pods(namespace)}/${target}/proxy/metrics`, {
      signal,
      maxBytes: maxPageBytes,
    });
  };
}

/** As the kubelet's probes, it does not verify the certificate: nothing on the page is secret. */
async function readDirectly({ address = '', metrics }: Replica, signal: AbortSignal): Promise<string> {
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
