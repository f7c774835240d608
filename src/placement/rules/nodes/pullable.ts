/**
 * Nodes that cannot pull an image of the pod, under `requirePullableNodes`. They are excluded by name, so
 * that new nodes and nodes without known results stay eligible. No node is excluded
 * - if no remaining group can pull all images and has an architecture of the pod: it would stay pending even
 *   after the credentials are fixed, while the kubelet retries by itself;
 * - if the pod names its node;
 * - while the pod is gated: its images are unknown, and additions to a gated pod cannot be removed;
 * - from a template: every change of a DaemonSet's template restarts all of its pods.
 */
import { isNonEmptyLabelValue } from '../../../names/labels.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import { byName } from '../../../names/values.ts';
import type { NodeGroup, Outcome, OwnFields, Pullability, Reason } from '../../decision.ts';
import { maxExcludedNodes } from '../../pod/expressions.ts';
import { namesNode } from '../../pod/terms.ts';
import type { RuleInput } from '../input.ts';
import { reason, type Draft } from '../rules.ts';

/** Nodes that are excluded by their label `kubernetes.io/hostname`. */
export interface Exclusion {
  /** Sorted. */
  readonly hostnames: readonly string[];
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}

/** Outcomes with which no nodes are excluded. */
export const withoutExclusion: ReadonlySet<Outcome> = new Set(['denied', 'pending', 'gated']);

/** Every required term gets the list, and etcd refuses an object of more than 1.5 MiB. */
const maxWritten = 2 * maxExcludedNodes;

export function areTooMany({ length }: readonly string[], { terms }: OwnFields): boolean {
  return length > maxExcludedNodes || length * Math.max(1, terms?.length ?? 0) > maxWritten;
}

export const maxNamesBytes = 400;
const maxGroupsBytes = 160;
/** Enough for people to find a fingerprint in the agents' answers. An agent may imitate this much of another's. */
const shownLength = 12;

interface Restricted extends Pullability {
  readonly image: string;
}

/** @param others hostnames that are excluded for another reason */
export function excludedNodesOf(
  { fields, images, policy, pullability, template }: RuleInput,
  { outcome, tolerated }: Draft,
  required: readonly string[] | undefined,
  others: readonly string[] = [],
): Exclusion {
  const noNodes: Exclusion = { hostnames: others, warnings: [], reasons: [] };
  const notExcluded = (why: string, restricted: readonly Restricted[]): Exclusion => ({
    ...noNodes,
    reasons: [reason('pullable-nodes-left-out', `${why}: ${describeAll(restricted)}`)],
  });
  if (!policy.requirePullableNodes || pullability === undefined || template !== undefined) return noNodes;
  if (withoutExclusion.has(outcome)) return noNodes;
  const restricted = images.flatMap(({ image }): Restricted[] => {
    const found = pullability(image);
    return found === undefined || found.unable.length === 0 ? [] : [{ image, ...found }];
  });
  if (restricted.length === 0) return noNodes;
  if (namesNode(fields)) return notExcluded('the pod names its node itself', restricted);

  const pullable = restricted.filter(({ able }) => able.length > 0);
  const unable = groupsIn(pullable.map((image) => image.unable));
  const architectures = tolerated ?? required;
  const remaining = groupsIn(pullable.map((image) => image.able)).filter(
    (group) =>
      unable.every(({ fingerprint }) => fingerprint !== group.fingerprint) && canRun(group, architectures),
  );
  if (remaining.length === 0) {
    const why = 'no nodes are known that can pull and run all images';
    return { ...notExcluded(why, restricted), warnings: [`archwright: ${why}: ${describeAll(restricted)}`] };
  }
  const unableNames = hostnamesOf(unable);
  const hostnames = [...new Set([...others, ...unableNames])].sort(byName);
  if (unableNames.length === 0) return notExcluded('the nodes are not known by name', restricted);
  if (areTooMany(hostnames, fields))
    return notExcluded(`${hostnames.length} nodes are too many to name`, restricted);
  const nodes = `excluded: ${listed(unableNames, (name) => name, maxNamesBytes)}`;
  const text = `${describeAll(pullable)}; ${nodes}`;
  return { hostnames, warnings: [], reasons: [reason('pullable-nodes', text)] };
}

function groupsIn(lists: readonly (readonly NodeGroup[])[]): readonly NodeGroup[] {
  return [...new Map(lists.flat().map((group) => [group.fingerprint, group])).values()];
}

function canRun({ architectures }: NodeGroup, wanted: readonly string[] | undefined): boolean {
  if (architectures.length === 0 || wanted === undefined || wanted.length === 0) return true;
  return architectures.some((architecture) => wanted.includes(architecture));
}

/** Sorted. A name that is no label value is on no node, and the API server would refuse it. */
function hostnamesOf(groups: readonly NodeGroup[]): readonly string[] {
  const found = new Set(groups.flatMap(({ hostnames }) => hostnames));
  return [...found].filter(isNonEmptyLabelValue).sort(byName);
}

function describeAll(restricted: readonly Restricted[]): string {
  return listed(restricted, describe, 1024);
}

function describe({ image, able, unable }: Restricted): string {
  const can = able.length === 0 ? 'no credential group' : `credential group ${namesOf(able)}`;
  return `${printable(image, maxImageBytes)}: ${can} can pull it, ${namesOf(unable)} cannot`;
}

function namesOf(groups: readonly NodeGroup[]): string {
  return listed(
    groups,
    ({ fingerprint }) => printable(fingerprint.slice(0, shownLength), shownLength),
    maxGroupsBytes,
  ).replaceAll('; ', ', ');
}
