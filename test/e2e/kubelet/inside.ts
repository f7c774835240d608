/**
 * Runs in the box: starts registries, an API server and a node, runs each case on both sides, and writes a
 * line of JSON for each. Pods name their node and service accounts exist, so no scheduler or controller runs.
 *
 *   PROGRAMS               paths of programs, as JSON
 *   E2E_SEED, E2E_CASES    the generated cases
 */
import { startCluster } from '../cluster/harness.ts';
import { kubernetes } from '../programs/kubernetes.ts';
import { createRandom } from '../random.ts';
import { generateSetup } from './generate.ts';
import { openKubeletSide } from './kubelet-side.ts';
import { startNodeContainerd, type NodeOptions } from './node.ts';
import type { Programs } from '../box/programs.ts';
import { startRegistries } from './registries.ts';
import { runSetup } from './run.ts';
import type { Setup } from './setup.ts';
import { writtenSetups } from './written-setups.ts';

const nodeName = 'box';
/** Starting a kubelet takes longer than a pod; its files stay the same for its whole life. */
const casesPerSetup = 10;

function setups(seed: number, cases: number): readonly Setup[] {
  const random = createRandom(seed);
  const generated = Array.from({ length: Math.ceil(cases / casesPerSetup) }, (_, index) =>
    generateSetup(random, `g${index}`, Math.min(casesPerSetup, cases - index * casesPerSetup)),
  );
  return [...writtenSetups, ...generated];
}

async function main(): Promise<void> {
  const { env } = process;
  const programs = JSON.parse(env['PROGRAMS'] ?? '') as Programs;
  const registries = await startRegistries();
  const { client, identities, server } = await startCluster({ apiServerOnly: kubernetes });
  // The kubelet, and the agent with its kubeconfig, may do everything: authorization is not compared.
  const user = { cn: `system:node:${nodeName}`, group: 'system:masters' };
  const node: NodeOptions = {
    programs,
    nodeName,
    kubeconfig: await identities.kubeconfig(user, server),
    cgroup: env['CGROUP'] ?? '',
    caFile: registries.caFile,
  };
  await startNodeContainerd(node);
  const kubeletSide = await openKubeletSide(client, nodeName, registries);
  for (const setup of setups(Number(env['E2E_SEED']), Number(env['E2E_CASES']))) {
    await runSetup(setup, node, registries, kubeletSide);
  }
}

await main();
process.exit(0);
