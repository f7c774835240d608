/** What lets programs find the controller through the proxy of the API server. */
import { networkInterfaces } from 'node:os';
import { paths } from '../../../src/kube/api/paths.ts';
import { ownNamespace } from './archwright.ts';
import type { Cluster } from './harness.ts';
import { podOf } from './pods.ts';

/** An address that the API server's proxy accepts: it refuses loopback. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (!found) throw new Error('this machine has no address besides loopback');
  return found.address;
}

/** The Service and the ConfigMap of the chart, for a controller that runs beside the cluster. @param port of its facts */
export async function createRelease(cluster: Cluster, port: number): Promise<void> {
  const metadata = { name: 'archwright-controller', namespace: ownNamespace };
  const v1 = { apiVersion: 'v1' };
  await cluster.create({
    ...v1,
    kind: 'Service',
    metadata,
    spec: { ports: [{ name: 'facts', port: 8443 }] },
  });
  // The proxy follows only endpoints that are pods with that address (kubernetes pkg/registry/core/service/storage, `isValidAddress`).
  const ip = ownAddress();
  // Never: no registry is asked for the image.
  const containers = [{ name: 'app', image: 'archwright:1', imagePullPolicy: 'Never' }];
  await cluster.create(
    podOf('controller', '', { nodeName: 'amd64-0', containers }, { namespace: ownNamespace }),
  );
  const status = { podIP: ip, podIPs: [{ ip }] };
  await cluster.merge(`${paths.pods(ownNamespace, 'controller')}/status`, { status });
  const targetRef = { kind: 'Pod', name: 'controller', namespace: ownNamespace };
  const subsets = [{ addresses: [{ ip, targetRef }], ports: [{ name: 'facts', port }] }];
  await cluster.create({ ...v1, kind: 'Endpoints', metadata, subsets });
  const labels = { 'app.kubernetes.io/part-of': 'archwright' };
  const data = { 'archwright.toml': 'preferredArchitecture = "arm64"\n' };
  const named = { name: 'archwright', namespace: ownNamespace, labels };
  await cluster.create({ ...v1, kind: 'ConfigMap', metadata: named, data });
}
