/** What a cluster and the replicas say about archwright now. What may not be read is listed, not guessed. */
import type { CoreV1Event } from '@kubernetes/client-node';
import { concurrently } from '../../src/async/concurrently.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { isCode } from '../../src/kube/api/errors.ts';
import type { ConfigMap, Json } from '../../src/kube/api/objects.ts';
import { objectsOf } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { printable } from '../../src/names/printable.ts';
import { configurationHash } from '../../src/policy/configuration/configuration.ts';
import { listReplicas, listWorkloads, type Replica } from './replicas.ts';
import { Samples, type Scrape } from './scrape.ts';

export interface ReadReplica extends Replica {
  readonly samples: Samples | undefined;
}

/** A warning about an object in the namespace. */
export type WarningEvent = Installation['warnings'][number];
export type Installation = Awaited<ReturnType<typeof readInstallation>>;

export interface InstallationReader {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly scrape: Scrape;
  readonly signal: AbortSignal;
}

const configurationKey = 'archwright.toml';
const concurrentScrapes = 8;
const maxMessageBytes = 300;

/** @throws KubeError unless a right is missing */
export async function readInstallation(reader: InstallationReader) {
  const { client, namespace, signal } = reader;
  const unread: string[] = [];
  const may = mayRead(unread);
  const [pods, deployments, daemonSets, warnings] = await Promise.all([
    may('pods', listReplicas(client, namespace, signal)),
    may('Deployments', listWorkloads(client, namespace, 'Deployment', signal)),
    may('DaemonSets', listWorkloads(client, namespace, 'DaemonSet', signal)),
    may('events', listWarnings(client, namespace, signal)),
  ]);
  const names = new Set((pods ?? []).filter(isScraped).flatMap(({ configMap }) => configMap ?? []));
  const [replicas, found] = await Promise.all([
    scrapeAll(pods ?? [], reader, unread),
    Promise.all([...names].map((name) => may(`ConfigMap ${name}`, readConfiguration(reader, name)))),
  ]);
  return {
    replicas,
    deployments: deployments ?? [],
    daemonSets: daemonSets ?? [],
    /** The file of each ConfigMap that replicas read, by name. */
    configurations: new Map(found.flatMap((each) => (each ? [[each.name, each] as const] : []))),
    /** The newest first. */
    warnings: warnings ?? [],
    /** What could not be read, and why. */
    unread,
  };
}

/** Adds what may not be read, or does not exist, to a list. */
export function mayRead(unread: string[]) {
  return async <T>(what: string, reading: Promise<T>): Promise<T | undefined> => {
    try {
      return await reading;
    } catch (error) {
      if (!isCode(error, 'forbidden', 'not-found')) throw error;
      unread.push(`${what}: ${error.message}`);
      return undefined;
    }
  };
}

/** Metrics of agents are usually on the loopback address of their nodes, and there may be thousands. */
function isScraped({ part }: Replica): boolean {
  return part !== 'agent';
}

async function scrapeAll(
  pods: readonly Replica[],
  { scrape, signal }: InstallationReader,
  unread: string[],
): Promise<readonly ReadReplica[]> {
  const pages = await concurrently(pods, concurrentScrapes, async (pod) =>
    isScraped(pod) ? await scrape(pod, signal) : undefined,
  );
  return pods.map((pod, index) => {
    const page = pages[index];
    if (page instanceof Samples) return { ...pod, samples: page };
    if (page !== undefined && pod.isRunning)
      unread.push(`metrics of ${pod.name}: ${printable(page.why, maxMessageBytes)}`);
    return { ...pod, samples: undefined };
  });
}

async function readConfiguration({ client, namespace, signal }: InstallationReader, name: string) {
  const { data } = await client.get<ConfigMap>(paths.configMaps(namespace, name), { signal });
  const text = data?.[configurationKey] ?? '';
  return { name, text, hash: configurationHash(text) };
}

async function listWarnings(client: KubeClient, namespace: string, signal: AbortSignal) {
  const query = { fieldSelector: 'type=Warning' };
  const events = objectsOf<Json<CoreV1Event>>(client, paths.events(namespace), { signal, query });
  const found = await Array.fromAsync(events, (event) => {
    const { involvedObject, reason = '', message = '', lastTimestamp, eventTime, metadata } = event;
    const at = Date.parse(lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? '') || 0;
    // The uid tells the object from an earlier one with its name.
    const { kind = '', name = '', uid } = involvedObject ?? {};
    return { kind, name, uid, reason, message, at };
  });
  return found.toSorted((a, b) => b.at - a.at);
}
