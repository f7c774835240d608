/** Pods with annotations up to the limit of a real API server, which counts archwright's too. */
import t from 'tap';
import type { Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { startCluster } from './harness.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import { startArchwright } from './archwright/start.ts';

/** Limit of the API server for all annotations of an object (ValidateAnnotationsSize). */
const most = 256 * 1024;
const key = 'x.example/large';

function bytesOf(pod: Pod): number {
  return Object.entries(pod.metadata?.annotations ?? {}).reduce(
    (sum, [key, value]) => sum + key.length + value.length,
    0,
  );
}

void t.test('pods with large annotations are placed, with a record if it has room', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  // Half of what the API server waits. Only images that take longer are unknown, however busy the machine is.
  const webhookSettings = { 'inline-budget': '5s' };
  const settings = { 'on-unknown-image': 'gate' };
  const { images } = await startArchwright(cluster, { settings, webhookSettings });
  const create = (name: string, image: string, room: number, spec: Partial<PodSpec> = {}): Promise<Pod> => {
    const annotations = { [key]: 'x'.repeat(most - room - key.length) };
    return cluster.create<Pod>(podOf(name, image, spec, { annotations }));
  };

  const known = images.push('known', ['arm64']);
  for (const room of [0, 320, 800]) {
    const pod = await create(`known-${room}`, known, room);
    t.ok(bytesOf(pod) <= most);
    t.equal('arch.example/decision' in (pod.metadata?.annotations ?? {}), room > 0, `room for ${room}`);
    t.equal(await nodeOf(cluster, `known-${room}`), 'arm64-0');
  }
  images.public.faults.add(/\/late\//u, { kind: 'delay', ms: 7000 });
  for (const room of [0, 150]) {
    const spec = { initContainers: [{ name: 'known', image: known }] };
    const pod = await create(`late-${room}`, images.push(`late/${room}`, ['arm64']), room, spec);
    t.equal(pod.spec.schedulingGates?.length, 1, 'it is gated');
    t.equal(await nodeOf(cluster, `late-${room}`), 'arm64-0', 'it is placed later');
  }
});
