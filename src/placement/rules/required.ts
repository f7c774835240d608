/**
 * Required architectures: the intersection of the architectures that each image has for the pod's operating system, within the
 * schedulable architectures. Unknown images do not count; the known ones are an upper bound.
 */
import type { ImageFacts } from '../../images/facts/facts.ts';
import { byName, isArchitecture, isBytecode, maxArchitectures } from '../../names/architecture.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import type { ImageVerdict } from '../decision.ts';
import type { ImageUse } from '../pod/images.ts';
import { draft, type Draft } from './rules.ts';

export function verdictsOf(
  uses: readonly ImageUse[],
  os: string,
  factsOf: (image: string) => ImageFacts | undefined,
): readonly ImageVerdict[] {
  return uses.map(({ image, usedBy, pullPolicy, volumeOnly }) => {
    // If never pulled, the image must already be on the node. No registry is authoritative for it.
    if (pullPolicy === 'Never') return { image, usedBy, architectures: undefined, facts: undefined };
    const facts = factsOf(image);
    if (facts === undefined) return { image, usedBy, architectures: undefined, unknown: 'unknown', facts };
    const code = facts.error?.code;
    if (code === undefined) return { image, usedBy, architectures: architecturesOf(facts, os), facts };
    const constrainsNothing = code === 'invalid-reference' || (code === 'not-an-image' && volumeOnly);
    return {
      image,
      usedBy,
      architectures: undefined,
      ...(constrainsNothing ? {} : { unknown: code }),
      facts,
    };
  });
}

interface Found {
  readonly os: string;
  readonly architectures: readonly string[] | undefined;
}

/** By list of platforms, which all pods of an image share, so that each list is read once. */
const foundIn = new WeakMap<ImageFacts['platforms'], Found>();

function architecturesOf({ platforms, source }: ImageFacts, podOs: string): readonly string[] | undefined {
  // An override names architectures without an operating system, so they apply to any.
  const os = source === 'override' ? (platforms[0]?.os ?? podOs) : podOs;
  const known = foundIn.get(platforms);
  if (known?.os === os) return known.architectures;
  const architectures = architecturesAmong(platforms, os);
  foundIn.set(platforms, { os, architectures });
  return architectures;
}

/**
 * The architectures of an image for one operating system.
 *
 * Variants are ignored. The node label is the GOARCH of the kubelet (kubernetes `pkg/kubelet/kubelet_node_status.go`), and no
 * other label states the variant of a CPU: requiring arm64/v9 or amd64/v3 would exclude every node. arm64 does not imply
 * arm, and amd64 does not imply 386, because that depends on the CPU and on how containerd pulls on the node.
 * @returns sorted, unique; `undefined` if the image constrains nothing: it has no valid platform (an artifact), or only
 * bytecode, which no node label names
 */
function architecturesAmong(platforms: ImageFacts['platforms'], os: string): readonly string[] | undefined {
  const found: string[] = [];
  let counted = false;
  let runsAnywhere = false;
  // A set pays off only for hostile indexes. Real images have a dozen platforms.
  const seen = platforms.length > maxArchitectures ? new Set<string>() : undefined;
  for (const platform of platforms) {
    if (platform.os === 'unknown' || platform.os === '' || !isArchitecture(platform.architecture)) continue;
    counted = true;
    if (isBytecode(platform.architecture)) {
      runsAnywhere = true;
      continue;
    }
    if (platform.os !== os) continue;
    if (seen ? seen.has(platform.architecture) : found.includes(platform.architecture)) continue;
    seen?.add(platform.architecture);
    found.push(platform.architecture);
  }
  if (!counted || (runsAnywhere && found.length === 0)) return undefined;
  return found.sort(byName);
}

/**
 * The architectures that every known image has.
 * @param schedulable architectures that nodes can have; empty: no bound
 * @returns sorted; empty if they share none; `undefined` if no image constrains anything
 */
export function commonArchitectures(
  images: readonly ImageVerdict[],
  schedulable: readonly string[],
): readonly string[] | undefined {
  let common: readonly string[] | undefined;
  for (const { architectures } of images) {
    if (architectures === undefined) continue;
    common = common === undefined ? architectures : intersection(common, architectures);
  }
  if (common === undefined) return undefined;
  const possible = schedulable.length === 0 ? common : intersection(common, schedulable);
  return possible.length > maxArchitectures ? possible.slice(0, maxArchitectures) : possible;
}

/**
 * The common architectures of the images within the allowed ones.
 * @param common `undefined`: the images constrain nothing, or are unknown. The allowed ones apply even then
 */
export function withinAllowed(
  common: readonly string[] | undefined,
  { allowed, schedulableArchitectures: schedulable }: Policy,
): readonly string[] | undefined {
  if (allowed === undefined) return common;
  const { architectures } = allowed;
  const possible = schedulable.length === 0 ? architectures : intersection(architectures, schedulable);
  return common === undefined ? possible : intersection(common, possible);
}

/** The decision if all images are known: their common architectures. */
export function requiredArchitectures(common: readonly string[] | undefined): Draft {
  if (common === undefined) {
    return draft('unconstrained', undefined, 'unconstrained', 'no image constrains the architecture');
  }
  const text = `all known images can run on ${common.join(', ')}`;
  return draft('placed', common, 'required-architectures', text);
}

/** The names in both lists, in the order of the first. */
export function intersection(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a === b) return a;
  if (b.length <= maxArchitectures) return a.filter((name) => b.includes(name));
  const wanted = new Set(b);
  return a.filter((name) => wanted.has(name));
}
