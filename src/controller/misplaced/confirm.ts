/**
 * Confirms before an eviction that images lack a node's architecture: the agent of a compromised node must
 * not decide that alone. Facts of a digest are proven by their documents, so the digests that the kubelet
 * pulled decide. If nothing was pulled, the agents of two nodes must agree.
 */
import { opinions } from '../../fleet/fleet.ts';
import type { ImageFacts } from '../../images/facts/facts.ts';
import type { Leading } from '../leadership/leading.ts';
import { factsOf, requestOfPod, useOf } from '../scope/pulled-images.ts';
import {
  lacks,
  pulledReferences,
  type ImageWithoutArchitecture,
  type MisplacedPod,
} from './misplaced-pod.ts';

/** As long as a lookup of the fleet may take. */
const opinionsMs = 15_000;

/** Whether every image is confirmed. Without agents, all facts are from registries. */
export async function isConfirmed(leading: Leading, misplaced: MisplacedPod): Promise<boolean> {
  if (leading.fleet === undefined) return true;
  for (const image of misplaced.images)
    if (!(await isImageConfirmed(leading, misplaced, image))) return false;
  return true;
}

async function isImageConfirmed(
  leading: Leading,
  { pod, architecture }: MisplacedPod,
  { image }: ImageWithoutArchitecture,
): Promise<boolean> {
  const byDigest = image.includes('@') ? [image] : pulledReferences(pod, image);
  const isMissing = (reference: string, facts: ImageFacts | undefined): boolean =>
    lacks(facts, reference, { os: pod.os, architecture, nodes: leading.nodeClasses() });
  if (byDigest.length > 0) {
    const facts = await factsOf(leading, pod, byDigest.map(useOf));
    return byDigest.every((reference) => isMissing(reference, facts.get(reference)));
  }
  const found = await askAgents(leading, pod, image);
  return found.length >= opinions && found.every((facts) => isMissing(image, facts));
}

/** @returns no facts if the pull secrets cannot be read */
async function askAgents(
  leading: Leading,
  pod: MisplacedPod['pod'],
  image: string,
): Promise<readonly ImageFacts[]> {
  const { fleet, signal, log } = leading;
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(opinionsMs)]);
    return (await fleet?.opinions(await requestOfPod(leading, pod, image, limit), limit)) ?? [];
  } catch (error) {
    signal.throwIfAborted();
    log.warn(
      { err: error, namespace: pod.namespace, image },
      'a misplaced pod cannot be confirmed by a second agent',
    );
    return [];
  }
}
