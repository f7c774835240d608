/** Runs setups and refused configurations on both sides, and reports each case as a line of JSON. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Running } from '../cluster/control-plane/processes.ts';
import { openAgentSide, type AgentSide } from './agent-side.ts';
import { compare, compareVerdict, type Circumstances, type Difference } from './compare.ts';
import type { KubeletSide } from './kubelet-side.ts';
import { kubeletReady, startKubelet, type NodeOptions } from './node.ts';
import { referenceOf, installPlugins } from './recorder.ts';
import type { RefusedConfig } from './refused-configs.ts';
import type { Registries } from './registries.ts';
import {
  binDir,
  dockerConfigs,
  pluginConfig,
  type Behavior,
  type CaseImage,
  type PodCase,
  type Setup,
} from './setup.ts';

export interface CaseReport {
  readonly setup: string;
  readonly name: string;
  /** Counts of the kubelet's side: the comparison is not empty. `severalUsers`: images with several users. */
  readonly happened: Readonly<Record<'pulled' | 'refused' | 'runs' | 'severalUsers', number>>;
  readonly differences: readonly Difference[];
  /** The case itself, if there is an unintended difference. */
  readonly example?: PodCase;
}

function report(line: CaseReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function prepare({ files, plugins }: Setup): void {
  for (const path of [...dockerConfigs, pluginConfig]) rmSync(path, { force: true, recursive: true });
  write(files);
  installPlugins(plugins?.behaviors ?? {});
}

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode: 0o600 });
  }
}

function startNodeKubelet(node: NodeOptions, { env, plugins }: Setup): Running {
  const all = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', ...env };
  return startKubelet(node, { env: all, pluginConfig: plugins?.config, binDir });
}

/** Runs pod by pod, so that both caches see the same pods. */
export async function runSetup(
  setup: Setup,
  node: NodeOptions,
  registries: Registries,
  kubeletSide: KubeletSide,
): Promise<void> {
  prepare(setup);
  await kubeletSide.prepare(setup);
  const kubelet = startNodeKubelet(node, setup);
  await kubeletReady(kubelet);
  const agent = await openAgentSide(setup, registries, node.kubeconfig);
  try {
    for (const pod of setup.pods) await runCase(setup, pod, agent, registries, kubeletSide);
    await kubeletSide.settle();
  } finally {
    await agent.close();
    await kubelet.stop();
  }
}

async function runCase(
  setup: Setup,
  pod: PodCase,
  agentSide: AgentSide,
  registries: Registries,
  kubeletSide: KubeletSide,
): Promise<void> {
  if (pod.afterMs !== undefined) await delay(pod.afterMs);
  if (pod.files !== undefined) {
    write(pod.files);
    await agentSide.refresh();
  }
  for (const image of pod.images) registries.push(image);
  const [theirs, ours] = await Promise.all([kubeletSide.run(pod), agentSide.run(pod)]);
  const differences = theirs.flatMap((one, index) => {
    const other = ours[index];
    return other === undefined ? [] : compare(one, other, circumstances(setup, pod, index));
  });
  const pulled = theirs.filter(({ outcome }) => outcome.includes('pulled')).length;
  report({
    setup: setup.name,
    name: pod.name,
    happened: {
      pulled,
      refused: theirs.length - pulled,
      runs: theirs.flatMap(({ runs }) => runs).length,
      severalUsers: theirs.filter(({ presented }) => presented.length > 1).length,
    },
    differences,
    ...(differences.some(({ deviation }) => deviation === undefined) && { example: pod }),
  });
  registries.clear();
}

function circumstances(setup: Setup, pod: PodCase, index: number): Circumstances {
  const { plugins, pods } = setup;
  const behaviors = Object.entries(plugins?.behaviors ?? {});
  const named = (are: (behavior: Behavior) => boolean | undefined): Set<string> =>
    new Set(behaviors.filter(([, behavior]) => are(behavior)).map(([name]) => name));
  const repository = (image: CaseImage | undefined): string | undefined =>
    referenceOf(image?.image ?? '')?.repository;
  const earlier = pods.slice(0, pods.indexOf(pod)).flatMap(({ images }) => images);
  const before = [...earlier, ...pod.images.slice(0, index)];
  return {
    tokenPlugins: setup.serviceAccountTokens === true ? new Set() : named(({ wantsToken }) => wantsToken),
    byToken: named(({ rememberedByToken }) => rememberedByToken),
    failingPlugins: named(({ failing }) => failing),
    pulledBefore: before.some((image) => repository(image) === repository(pod.images[index])),
    filesChanged: pod.files !== undefined,
  };
}

/** A kubelet refuses its configuration within a second or two. */
const refusalTimeoutMs = 30_000;

/** The kubelet ends with an error. The agent must report the same error. */
export async function runRefusal(
  { name, files, isDirectory = false, programs = [] }: RefusedConfig,
  node: NodeOptions,
  registries: Registries,
): Promise<void> {
  const behaviors = Object.fromEntries(programs.map((program) => [program, { stdout: '' }]));
  const plugins = { config: pluginConfig, isDirectory, behaviors };
  const setup: Setup = { name: 'refused configurations', hostRoot: '/', env: {}, files, plugins, pods: [] };
  prepare(setup);
  const kubelet = startNodeKubelet(node, setup);
  const outcome = await Promise.race([kubelet.ended, delay(refusalTimeoutMs, 'it runs')]);
  await kubelet.stop();
  const agent = await openAgentSide(setup, registries, node.kubeconfig);
  const problems = agent.problems();
  await agent.close();
  const theirs = refusalIn(kubelet.log()) ?? `no refusal: ${outcome}`;
  const happened = { pulled: 0, refused: 0, runs: 0, severalUsers: 0 };
  report({ setup: setup.name, name, happened, differences: compareVerdict(theirs, problems.join('; ')) });
}

/** The reason in the kubelet's log why it does not start. */
function refusalIn(log: string): string | undefined {
  const quoted = /"Failed to register CRI auth plugins" err=("(?:[^"\\]|\\.)*")/.exec(log)?.[1];
  return quoted === undefined ? undefined : String(JSON.parse(quoted));
}
