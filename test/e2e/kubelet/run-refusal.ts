/** A configuration that the kubelet refuses, shown to both sides. */
import { setTimeout as delay } from 'node:timers/promises';
import { openAgentSide } from './agent-side.ts';
import { compareVerdict } from './compare.ts';
import { prepare, startNodeKubelet } from './node-files.ts';
import type { NodeOptions } from './node.ts';
import type { RefusedConfig } from './refused-configs.ts';
import type { Registries } from './registries.ts';
import { report } from './report.ts';
import { pluginConfig, type Setup } from './setup.ts';

/** A kubelet refuses its configuration within a second or two. */
const refusalTimeoutMs = 30_000;

/** The kubelet ends with an error; ours has to be in its words. */
export async function runRefusal(
  refusal: RefusedConfig,
  node: NodeOptions,
  registries: Registries,
): Promise<void> {
  const { name, files, isDirectory = false, programs = [] } = refusal;
  const behaviors = Object.fromEntries(programs.map((program) => [program, { stdout: '' }]));
  const setup: Setup = {
    name: 'refused configurations',
    hostRoot: '/',
    env: {},
    files,
    plugins: { config: pluginConfig, isDirectory, behaviors },
    pods: [],
  };
  prepare(setup);
  const kubelet = startNodeKubelet(node, setup);
  const outcome = await Promise.race([kubelet.ended, delay(refusalTimeoutMs, 'it runs')]);
  await kubelet.stop();
  const agent = await openAgentSide(setup, registries, node.kubeconfig);
  const problems = agent.problems();
  await agent.close();
  const theirs = refusalIn(kubelet.log()) ?? `no refusal: ${outcome}`;
  report({
    setup: setup.name,
    name,
    happened: { pulled: 0, refused: 0, runs: 0, severalUsers: 0 },
    differences: compareVerdict(theirs, problems.join('; ')),
  });
}

/** Why the kubelet does not start, as its log quotes it. */
function refusalIn(log: string): string | undefined {
  const quoted = /"Failed to register CRI auth plugins" err=("(?:[^"\\]|\\.)*")/.exec(log)?.[1];
  return quoted === undefined ? undefined : String(JSON.parse(quoted));
}
