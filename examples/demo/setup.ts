/** Starts everything: registries, their network, agents and webhook. */
import { createCa } from '../../test/support/certificates.ts';
import { startNetwork } from './network.ts';
import { startRegistries, type Registries } from './registries.ts';
import { startServers, type Servers } from './servers.ts';
import type { Workspace } from './workspace.ts';

export interface Setup {
  readonly registries: Registries;
  readonly servers: Servers;
  readonly configFile: string;
}

/**
 * Starts it all; it ends with the workspace.
 * @param kubeconfig of the Kubernetes API
 */
export async function setUp(workspace: Workspace, kubeconfig: string): Promise<Setup> {
  const registryCa = await createCa('demo registries');
  const registries = await startRegistries(registryCa);
  workspace.onClose(() => registries.close());
  const network = await startNetwork(
    new Map(registries.all.flatMap(({ domains, server }) => domains.map((name) => [name, server.port]))),
  );
  workspace.onClose(() => network.close());
  const caFile = await workspace.write('registries-ca.crt', registryCa.cert);
  const configFile = await workspace.write('archwright.toml', configuration(registries, caFile));
  const servers = await startServers({ workspace, configFile, kubeconfig, proxy: network.url });
  return { registries, servers, configFile };
}

function configuration({ mirror }: Registries, caFile: string): string {
  return `# Shows a pod that waits until its images are known; a cluster with a controller would open the gate later.
onUnknownImage = "gate"
# Nothing is known at first, and the machine may be slow. In a cluster 150 ms are enough, the default.
inlineBudget = "10s"
proxies = ["${mirror.serves}=${mirror.server.host}"]
caFiles = [${JSON.stringify(caFile)}]
`;
}
