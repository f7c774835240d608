/**
 * The architectures that can run an image: those with a class of nodes that can pull and run it, or that may
 * be able to as far as it is known. Classes of the same architecture that cannot are kept for
 * `nodes/classes.ts`.
 *
 * The architectures of an index are not enough: containerd takes 386 on amd64 if it pulls locally, but never
 * amd64/v3.
 */
import type { ImageFacts } from '../../../images/facts/facts.ts';
import { isArchitecture, isBytecode, maxArchitectures } from '../../../names/architecture.ts';
import { byName } from '../../../names/values.ts';
import type { NodeClass } from '../../../nodes/node-class.ts';
import { groupsOf, type NodeClasses, type NodesOfClass } from '../../../nodes/node-classes.ts';
import { selectPlatform, type ImageForm } from '../../../nodes/selection.ts';
import type { Fit, ImageVerdict } from '../../decision.ts';
import type { ImageUse } from '../../pod/images.ts';

type Platforms = ImageFacts['platforms'];

interface FoundFit {
  /** Sorted. `undefined`: the image constrains nothing. */
  readonly architectures: readonly string[] | undefined;
  /** Architectures without a node that could run it, although its index does not name them. */
  readonly widened: readonly string[];
  readonly fit?: Fit;
}

interface Image extends Pick<ImageFacts, 'platforms' | 'brokenOn' | 'requiredLevel'> {
  readonly os: string;
  readonly form: ImageForm | 'override';
}

/** The architecture whose nodes may run programs of another one. */
const hosts: ReadonlyMap<string, string> = new Map([
  ['386', 'amd64'],
  ['arm', 'arm64'],
]);
const guests: ReadonlyMap<string, string> = new Map([...hosts].map(([guest, host]) => [host, guest]));

/** Keys: lists of platforms, which all pods of an image share. */
const remembered = new WeakMap<
  Platforms,
  Image & { readonly classes: NodeClasses | undefined; readonly found: FoundFit }
>();

/** @param classes `undefined`: nothing is known of the nodes */
function fitOf(facts: ImageFacts, podOs: string, classes: NodeClasses | undefined): FoundFit {
  const image = imageOf(facts, podOs);
  const before = remembered.get(image.platforms);
  const isSame =
    before?.os === image.os &&
    before.classes === classes &&
    before.form === image.form &&
    before.requiredLevel === image.requiredLevel;
  if (isSame) return before.found;
  const found = findFit(image, classes);
  remembered.set(image.platforms, { ...image, classes, found });
  return found;
}

const indexTypes: ReadonlySet<string | undefined> = new Set([
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]);

function imageOf(
  { platforms, source, mediaType, brokenOn, requiredLevel }: ImageFacts,
  podOs: string,
): Image {
  // An override names architectures without an operating system, so they apply to any, such as freebsd.
  const isNamed = source !== 'override' || platforms.some((each) => each.os === podOs);
  const os = isNamed ? podOs : (platforms[0]?.os ?? podOs);
  const form = source === 'override' ? 'override' : formOf(mediaType);
  return { platforms, os, form, ...(brokenOn && { brokenOn }), ...(requiredLevel && { requiredLevel }) };
}

/** Without a media type, several platforms can only be those of an index. */
export function formOf(mediaType: string | undefined): ImageForm {
  return mediaType !== undefined && !indexTypes.has(mediaType) ? 'manifest' : 'index';
}

function findFit(image: Image, classes: NodeClasses | undefined): FoundFit {
  const named = architecturesAmong(image.platforms, image.os);
  if (named === undefined) return { architectures: undefined, widened: [] };
  const few = named.slice(0, maxNamed);
  const wider = few.flatMap((name) => hosts.get(name) ?? []).filter((name) => !named.includes(name));
  const fit = {
    refusing: new Map<NodesOfClass, string>(),
    leftOut: new Map<string, string>(),
    dependsOn: new Map<string, string>(),
  };
  const runsOn = (name: string): boolean => fits(image, name, classes, fit);
  const architectures = [...few.filter(runsOn), ...named.slice(maxNamed)];
  const widened = image.form === 'override' ? [] : wider.filter(runsOn);
  const present = widened.filter(
    (name) => classes === undefined || groupsOf(classes, name, image.os).length > 0,
  );
  const isPlain = Object.values(fit).every(({ size }) => size === 0);
  return {
    architectures: present.length === 0 ? architectures : [...architectures, ...present].sort(byName),
    widened: widened.filter((name) => !present.includes(name)),
    ...(!isPlain && { fit }),
  };
}

/** Real indexes name a dozen. Further names are not checked: the intersection takes 16 at most. */
const maxNamed = 4 * maxArchitectures;

interface GrowingFit extends Fit {
  readonly refusing: Map<NodesOfClass, string>;
  readonly leftOut: Map<string, string>;
  readonly dependsOn: Map<string, string>;
}

/** Whether a node of an architecture may run the image. Without nodes, one of unknown details counts. */
function fits(
  image: Image,
  architecture: string,
  classes: NodeClasses | undefined,
  { refusing, leftOut, dependsOn }: GrowingFit,
): boolean {
  if (runsEverywhere(image, architecture)) return true;
  const groups = groupsOf(classes, architecture, image.os);
  const bare: NodesOfClass = { class: { os: image.os, architecture }, levels: {}, nodes: 0, hostnames: [] };
  const refused: (readonly [NodesOfClass, string])[] = [];
  const deciding = new Set<string>();
  const tried = groups.length === 0 ? [bare] : groups;
  for (const group of tried) {
    const { verdict, reason = '', dependsOn: fields = [] } = selectionOn(image, group.class);
    if (verdict === 'refused') refused.push([group, reason]);
    if (verdict === 'depends') for (const field of fields) deciding.add(field);
  }
  if (refused.length === tried.length) {
    leftOut.set(architecture, refused[0]?.[1] ?? '');
    return false;
  }
  for (const [group, reason] of refused) refusing.set(group, reason);
  // Nobody needs to hear about a 32-bit CPU that no node has.
  if (deciding.size > 0 && (groups.length > 0 || guests.has(architecture)))
    dependsOn.set(architecture, [...deciding].join(', '));
  return true;
}

/** Every runtime prefers the plain platform without a variant, and every CPU of the architecture runs it. */
function runsEverywhere({ platforms, os, form, requiredLevel = 1 }: Image, architecture: string): boolean {
  if (architecture === 'amd64' && requiredLevel > 1) return false;
  if (form === 'override') return true;
  if (os === 'windows') return false;
  return platforms.some(
    (platform) =>
      platform.os === os &&
      platform.architecture === architecture &&
      (platform.variant ?? '') === '' &&
      platform.written === undefined &&
      platform.unnamed === undefined &&
      platform.needsFeatures === undefined,
  );
}

/** Real indexes have a handful of one architecture. */
const maxTried = 64;

function selectionOn({ platforms, os, form, requiredLevel, brokenOn }: Image, node: NodeClass) {
  const { architecture } = node;
  if (brokenOn?.includes(architecture)) return { verdict: 'refused', reason: 'exec format error' } as const;
  const guest = guests.get(architecture);
  // If an index names no platforms, the first entry counts, even for another architecture.
  const possible =
    form === 'override'
      ? [{ os, architecture }]
      : platforms.filter(
          (each) => each.unnamed || (each.os === os && [architecture, guest].includes(each.architecture)),
        );
  return selectPlatform(
    possible.slice(0, maxTried),
    node,
    requiredLevel,
    form === 'index' ? form : 'manifest',
  );
}

/**
 * The architectures that an image names for one operating system.
 * @returns sorted, unique; `undefined` if the image constrains nothing: it has no valid platform (an
 * artifact), or only bytecode, which no node label names
 */
function architecturesAmong(platforms: Platforms, os: string): readonly string[] | undefined {
  const found = new Set<string>();
  let counted = false;
  let runsAnywhere = false;
  for (const platform of platforms) {
    if (platform.os === 'unknown' || platform.os === '' || !isArchitecture(platform.architecture)) continue;
    counted = true;
    if (isBytecode(platform.architecture)) {
      runsAnywhere = true;
      continue;
    }
    if (platform.os === os) found.add(platform.architecture);
  }
  if (!counted || (runsAnywhere && found.size === 0)) return undefined;
  return [...found].sort(byName);
}

/**
 * Each image: the architectures that it can run on for the pod's operating system, or why it is unknown.
 * @param nodes classes of the cluster's nodes. Default: not known, so what any known runtime could run counts
 * @param schedulable architectures that nodes can have, although none may have one now
 */
export function verdictsOf(
  uses: readonly ImageUse[],
  os: string,
  factsOf: (image: string) => ImageFacts | undefined,
  nodes?: NodeClasses,
  schedulable: readonly string[] = [],
): readonly ImageVerdict[] {
  return uses.map(({ image, usedBy, pullPolicy, volumeOnly }) => {
    // If never pulled, the image must already be on the node. No registry is authoritative for it.
    if (pullPolicy === 'Never') return { image, usedBy, architectures: undefined, facts: undefined };
    const facts = factsOf(image);
    if (facts === undefined) return { image, usedBy, architectures: undefined, unknown: 'unknown', facts };
    const code = facts.error?.code;
    if (code === undefined) {
      const { architectures, widened, fit } = fitOf(facts, os, nodes);
      const more = widened.filter((name) => schedulable.includes(name));
      const all = more.length === 0 ? architectures : [...(architectures ?? []), ...more].sort(byName);
      return { image, usedBy, architectures: all, ...(fit && { fit }), facts };
    }
    const constrainsNothing = code === 'invalid-reference' || (code === 'not-an-image' && volumeOnly);
    return { image, usedBy, architectures: undefined, ...(!constrainsNothing && { unknown: code }), facts };
  });
}
