/** Runs setups on both sides, and reports each case as a line of JSON. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openAgentSide, type AgentSide } from './agent-side.ts';
import { compare, type Circumstances, type Difference } from './compare.ts';
import type { KubeletSide } from './kubelet-side.ts';
import { kubeletReady, startKubelet, type NodeOptions } from './node.ts';
import { referenceOf, installPlugins } from './recorder.ts';
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

/** Runs pod by pod, so that both caches see the same pods. */
export async function runSetup(
  setup: Setup,
  node: NodeOptions,
  registries: Registries,
  kubeletSide: KubeletSide,
): Promise<void> {
  prepare(setup);
  await kubeletSide.prepare(setup);
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', ...setup.env };
  const kubelet = startKubelet(node, { env, pluginConfig: setup.plugins?.config, binDir });
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
