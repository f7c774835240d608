/**
 * Runs in the box: brings up registries, control plane and node, takes each case through both sides, and writes a line of JSON for
 * each. `PROGRAMS` says where the programs are; `E2E_SEED` and `E2E_CASES` which cases are generated.
 */
import { startControlPlane } from './control-plane.ts';
import { openKubeletSide } from './kubelet-side.ts';
import { startContainerd, type NodeOptions } from './node.ts';
import type { Programs } from './programs.ts';
import { refusedConfigs } from './refused-configs.ts';
import { startRegistries } from './registries.ts';
import { runRefusal } from './run-refusal.ts';
import { runSetup } from './run-setup.ts';
import { setups } from './setups.ts';

const nodeName = 'box';

async function main(): Promise<void> {
  const env = process.env;
  const programs = JSON.parse(env['PROGRAMS'] ?? '') as Programs;
  const registries = await startRegistries();
  const { api, kubeconfig } = await startControlPlane(programs, nodeName);
  const node: NodeOptions = {
    programs,
    nodeName,
    kubeconfig,
    cgroup: env['CGROUP'] ?? '',
    caFile: registries.caFile,
  };
  await startContainerd(node);
  const kubeletSide = await openKubeletSide(api, nodeName, registries);
  for (const refusal of refusedConfigs) await runRefusal(refusal, node, registries);
  for (const setup of setups(Number(env['E2E_SEED']), Number(env['E2E_CASES']))) {
    await runSetup(setup, node, registries, kubeletSide);
  }
}

await main();
process.exit(0);
