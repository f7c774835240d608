/** The kubelet's side of a case: makes a pod, follows the events of its images, and deletes the pod. */
import { readdirSync } from 'node:fs';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { patience } from '../cluster/harness.ts';
import type { EventNow } from '../cluster/control-plane/pods.ts';
import { watch } from '../cluster/control-plane/watch.ts';
import { isOf, observed, referenceOf, type Observation, recordedRuns } from './recorder.ts';
import type { Registries } from './registries.ts';
import type { PodCase, Setup } from './setup.ts';
import { until } from '../../support/until.ts';

export type KubeletSide = Awaited<ReturnType<typeof openKubeletSide>>;

/** Pulls and runs of plugins take seconds. */
const podTimeoutMs = 60_000;
/** Ending a sandbox takes a fraction of a second. */
const endTimeoutMs = 30_000;

const inDefault = '/api/v1/namespaces/default';
/** containerd has a folder here for each running sandbox. */
const tasks = '/run/containerd/io.containerd.runtime.v2.task/k8s.io';

export async function openKubeletSide(client: KubeClient, nodeName: string, registries: Registries) {
  /** Pod → container → its first decisive event. */
  const eventsByPod = new Map<string, Map<string, { readonly reason: string; readonly message: string }>>();
  const waiting = new Map<string, () => void>();
  /** Repositories of failed pods: the kubelet may still run plugins for them. */
  const unsettled = new Set<string>();

  const events = await watch<EventNow>(client, '/api/v1/events');
  events.onChange(({ object: { reason = '', message = '', involvedObject } }) => {
    const container = /^spec\.containers\{(.+)\}$/.exec(involvedObject?.fieldPath ?? '')?.[1];
    const pod = involvedObject?.name ?? '';
    const known = eventsByPod.get(pod);
    if (container === undefined || known === undefined || known.has(container)) return;
    if (reason !== 'Pulled' && reason !== 'Failed' && reason !== 'InspectFailed') return;
    known.set(container, { reason, message });
    waiting.get(pod)?.();
  });

  async function create(resource: string, object: object): Promise<void> {
    await client.create(`${inDefault}/${resource}`, object, { signal: patience() });
  }

  async function pullEventsOf(pod: PodCase): Promise<Map<string, { reason: string; message: string }>> {
    const known = new Map<string, { reason: string; message: string }>();
    eventsByPod.set(pod.name, known);
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(pod.name, () => {
      if (known.size === pod.images.length) resolve();
    });
    const timer = setTimeout(resolve, podTimeoutMs);
    await create('pods', manifestOf(pod, nodeName));
    await promise;
    clearTimeout(timer);
    const query = { gracePeriodSeconds: 0 };
    await client.delete(`${inDefault}/pods/${pod.name}`, { signal: patience(), query });
    return known;
  }

  return {
    prepare: async ({ accounts = {} }: Setup): Promise<void> => {
      for (const [name, annotations] of Object.entries(accounts)) {
        await create('serviceaccounts', { metadata: { name, annotations } });
      }
    },
    /** Runs the pod until each image has its outcome. */
    run: async (pod: PodCase): Promise<Observation[]> => {
      const repositories = pod.images.map(({ image }) => referenceOf(image)?.repository ?? '');
      if (repositories.some((repository) => unsettled.has(repository))) {
        await ended();
        unsettled.clear();
      }
      for (const [index, secret] of pod.secrets.entries()) {
        if (secret.data !== undefined) await create('secrets', secretOf(pod, index));
      }
      const started = performance.timeOrigin + performance.now();
      const pullEvents = await pullEventsOf(pod);
      if ([...pullEvents.values()].some(({ reason }) => reason !== 'Pulled')) {
        for (const repository of repositories) unsettled.add(repository);
      }
      const all = { runs: recordedRuns(), seen: registries.seen() };
      let from = started;
      return pod.images.map(({ image }, index) => {
        const reference = referenceOf(image);
        const mine = all.seen.filter(
          (request) => request.side === 'kubelet' && request.at > from && isOf(request, reference),
        );
        // The next image of the same repository begins with the request for its tag.
        const tags = mine.filter((request) => request.tag !== undefined);
        const next = tags.find((request) => request.tag !== (reference?.tag ?? 'latest'));
        const own = next === undefined ? mine : mine.filter(({ at }) => at < next.at);
        // The kubelet soon syncs the pod again and runs plugins without a pull; those runs do not count.
        const to = own.at(-1)?.at ?? Number.POSITIVE_INFINITY;
        const span = { side: 'kubelet', reference, from, to } as const;
        const happened = observed(span, all);
        if (own.length > 0) from = to;
        const event = pullEvents.get(`c${index}`) ?? { reason: 'none', message: 'no event in time' };
        return { image, ...happened, outcome: classesOf(event), message: event.message };
      });
    },
    /** Waits until the kubelet has ended all pods, which the next kubelet could not do. */
    settle: ended,
  };
}

/** Waits until no sandbox runs. Its end follows the pod's last sync, and no plugins run after it. */
function ended(): Promise<void> {
  return until(() => readdirSync(tasks).length === 0, 'the end of the pod', endTimeoutMs);
}

function secretOf(pod: PodCase, index: number): object {
  const { data = {}, type } = pod.secrets[index] ?? {};
  return { metadata: { name: `${pod.name}-${index}` }, type: type ?? 'Opaque', stringData: data };
}

function manifestOf({ name, secrets, images, serviceAccount }: PodCase, nodeName: string): object {
  return {
    metadata: { name },
    spec: {
      nodeName,
      hostNetwork: true,
      ...(serviceAccount !== undefined && { serviceAccountName: serviceAccount }),
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      imagePullSecrets: secrets.map((_, index) => ({ name: `${name}-${index}` })),
      containers: images.map(({ image }, index) => ({ name: `c${index}`, image, imagePullPolicy: 'Always' })),
    },
  };
}

const classes: Readonly<Record<string, RegExp>> = {
  unauthorized: /401 Unauthorized|no basic auth credentials|authorization failed|invalid username\/password/,
  forbidden: /403 Forbidden|insufficient_scope/,
  'not-found': /not found/,
  'malformed-secret': /unmarshal|illegal base64|unable to parse auth field/,
  'invalid-reference': /InvalidImageName|couldn't parse image/,
};

/** The classes of an event; several if attempts failed in different ways. */
function classesOf({ reason, message }: { readonly reason: string; readonly message: string }): string[] {
  if (reason === 'Pulled') return ['pulled'];
  const found = Object.keys(classes).filter((name) => classes[name]?.test(message));
  return found.length > 0 ? found : [`${reason}: ${message}`];
}
