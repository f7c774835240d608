/** Pods with annotations up to the limit of a real API server, which counts archwright's too. */
import t from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { startCluster } from './harness.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import { startAdmission } from './archwright/start.ts';

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
  // Half of what the API server waits: the image is known in time, however busy the machine is.
  const { images } = await startAdmission(cluster, { settings: { 'inline-budget': '5s' } });
  const known = images.push('known', ['arm64']);
  for (const room of [0, 160, 800]) {
    const annotations = { [key]: 'x'.repeat(most - room - key.length) };
    const pod = await cluster.create<Pod>(podOf(`known-${room}`, known, {}, { annotations }));
    t.ok(bytesOf(pod) <= most);
    t.equal('arch.example/decision' in (pod.metadata?.annotations ?? {}), room === 800, `room for ${room}`);
    t.equal(await nodeOf(cluster, `known-${room}`), 'arm64-0');
  }
});
