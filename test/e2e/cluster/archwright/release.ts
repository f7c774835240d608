/** Objects with which programs find the controller through the API server's proxy. */
import type { Test } from 'tap';
import { paths } from '../../../../src/kube/api/paths.ts';
import { ownNamespace, prepareArchwright, startAgent, startController } from './archwright.ts';
import { startCluster, type Cluster } from '../harness.ts';
import { startImages } from './images.ts';
import { freePort, ownAddress } from '../control-plane/ports.ts';

/** The chart's Service and ConfigMap for a controller outside of the cluster. @param port of its facts */
async function createRelease(cluster: Cluster, port: number): Promise<void> {
  const service = `${ownNamespace}/archwright-controller`;
  await cluster.make('Service', service, { spec: { ports: [{ name: 'facts', port: 8443 }] } });
  // Endpoints must be pods with this address (pkg/registry/core/service/storage, `isValidAddress`).
  const ip = ownAddress;
  if (ip === undefined) throw new Error('this machine has no address besides loopback');
  // Never pulled: no registry has the image.
  const containers = [{ name: 'app', image: 'archwright:1', imagePullPolicy: 'Never' }];
  await cluster.make('Pod', `${ownNamespace}/controller`, { spec: { nodeName: 'amd64-0', containers } });
  const status = { podIP: ip, podIPs: [{ ip }] };
  await cluster.merge(`${paths.pods(ownNamespace, 'controller')}/status`, { status });
  const targetRef = { kind: 'Pod', name: 'controller', namespace: ownNamespace };
  const subsets = [{ addresses: [{ ip, targetRef }], ports: [{ name: 'facts', port }] }];
  await cluster.make('Endpoints', service, { subsets });
  const metadata = { labels: { 'app.kubernetes.io/part-of': 'archwright' } };
  const data = { 'archwright.toml': 'preferredArchitecture = "arm64"\n' };
  await cluster.make('ConfigMap', `${ownNamespace}/archwright`, { metadata, data });
}

/** Starts a cluster of one node, with an agent and a controller that serves facts requests through the API server's proxy. */
export async function startRelease(t: Test) {
  const cluster = await startCluster({ nodes: { amd64: 1 } }, t);
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const agent = await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } });
  const port = await freePort();
  const settings = { 'facts-listen': `0.0.0.0:${port}` };
  const controller = await startController(cluster, { tls, agents: [agent], settings });
  await createRelease(cluster, port);
  return { cluster, images, controller };
}
