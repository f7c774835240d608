/** Runs a setup on both sides, pod by pod, so that both caches see the same pods. */
import { setTimeout as delay } from 'node:timers/promises';
import { openAgentSide, type AgentSide } from './agent-side.ts';
import { compare, type Circumstances } from './compare.ts';
import type { KubeletSide } from './kubelet-side.ts';
import { prepare, startNodeKubelet, write } from './node-files.ts';
import { kubeletReady, type NodeOptions } from './node.ts';
import { referenceOf } from './observation.ts';
import type { Registries } from './registries.ts';
import { report } from './report.ts';
import type { Behavior, CaseImage, PodCase, Setup } from './setup.ts';

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
  report({
    setup: setup.name,
    name: pod.name,
    happened: {
      pulled: theirs.filter(({ outcome }) => outcome.includes('pulled')).length,
      refused: theirs.filter(({ outcome }) => !outcome.includes('pulled')).length,
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
  const before = [
    ...pods.slice(0, pods.indexOf(pod)).flatMap(({ images }) => images),
    ...pod.images.slice(0, index),
  ];
  return {
    tokenPlugins: setup.serviceAccountTokens === true ? new Set() : named(({ wantsToken }) => wantsToken),
    byToken: named(({ rememberedByToken }) => rememberedByToken),
    failingPlugins: named(({ failing }) => failing),
    askedBefore: before.some((image) => repository(image) === repository(pod.images[index])),
    filesChanged: pod.files !== undefined,
  };
}
