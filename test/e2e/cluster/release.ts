/** Objects by which programs find the controller through the API server's proxy. */
import { networkInterfaces } from 'node:os';
import type { Test } from 'tap';
import { paths } from '../../../src/kube/api/paths.ts';
import { ownNamespace, prepareArchwright, startAgent, startController } from './archwright.ts';
import { startCluster, type Cluster } from './harness.ts';
import { startImages } from './images.ts';
import { freePort } from './ports.ts';

/** An address that the API server's proxy accepts: it refuses loopback. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (!found) throw new Error('this machine has no address besides loopback');
  return found.address;
}

/** The chart's Service and ConfigMap for a controller beside the cluster. @param port of its facts */
async function createRelease(cluster: Cluster, port: number): Promise<void> {
  const service = `${ownNamespace}/archwright-controller`;
  await cluster.make('Service', service, { spec: { ports: [{ name: 'facts', port: 8443 }] } });
  // Endpoints must be pods with this address (pkg/registry/core/service/storage, `isValidAddress`).
  const ip = ownAddress();
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

/** Starts a cluster of one node, with an agent and a controller that answers facts requests by its proxy. */
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
