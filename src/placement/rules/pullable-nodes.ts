/**
 * Nodes that cannot pull an image of the pod, under `requirePullableNodes`. They are left out by their names, so that a
 * node that comes tomorrow, or one of which nothing is known, stays possible: what is not known never keeps a pod from
 * running. For the same reason nobody is left out
 * - where no group of nodes would remain that can pull and has an architecture of the pod: the pod would stay pending
 *   even after the credentials are put right, while the kubelet tries again by itself;
 * - where the pod names its node itself;
 * - behind the gate: its images are not known yet, and what is added to a gated pod cannot be taken back;
 * - from a template: a DaemonSet's lives for years, and every change of it restarts all of its pods.
 */
import { byName, own } from '../../names/architecture.ts';
import { isNonEmptyLabelValue } from '../../names/labels.ts';
import { keys } from '../../names/keys.ts';
import type { ImageVerdict, NodeGroup, PlacementInput, Pullability, Reason } from '../decision.ts';
import type { Draft } from './draft.ts';
import type { OwnFields } from '../record/own-fields.ts';
import { reason } from './rules.ts';
import { pinsNode } from '../pod/terms.ts';
import { listed, maxImageBytes, printable } from '../../names/printable.ts';

/** The scheduler compares each node with each value; this is also the bound of what a record is believed to hold. */
export const maxExcludedNodes = 250;
/** The list stands in every required term; an object of more than 1.5 MiB is refused by etcd. */
const maxWritten = 2 * maxExcludedNodes;

const maxGroupsBytes = 160;
const maxNamesBytes = 400;

export interface ExcludedNodes {
  readonly hostnames: readonly string[];
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}

const nobody: ExcludedNodes = Object.freeze({ hostnames: [], warnings: [], reasons: [] });

/** An image that some nodes cannot pull. */
interface Restricted extends Pullability {
  readonly image: string;
}

/**
 * The nodes that a pod is kept away from.
 * @param draft what was decided on architectures
 */
export function excludedNodesOf(
  input: PlacementInput,
  parts: OwnFields,
  images: readonly ImageVerdict[],
  draft: Pick<Draft, 'outcome' | 'required' | 'tolerated'>,
): ExcludedNodes {
  const { policy, pullability, template } = input;
  if (!policy.requirePullableNodes || pullability === undefined || template !== undefined) return nobody;
  const { outcome } = draft;
  if (outcome === 'denied' || outcome === 'pending' || outcome === 'gated') return nobody;
  const restricted = images.flatMap(({ image }): Restricted[] => {
    const found = pullability(image);
    return found === undefined || found.unable.length === 0 ? [] : [{ image, ...found }];
  });
  if (restricted.length === 0) return nobody;
  if (namesNode(parts)) return leftOut('the pod names its node itself', restricted);

  const pullable = restricted.filter(({ able }) => able.length > 0);
  const unable = groupsIn(pullable.map((image) => image.unable));
  const architectures = draft.tolerated ?? draft.required;
  const remaining = groupsIn(pullable.map((image) => image.able)).filter(
    (group) => unable.every(({ name }) => name !== group.name) && canRun(group, architectures),
  );
  if (remaining.length === 0) {
    const why = 'no nodes are known that can pull and run all images';
    return { ...leftOut(why, restricted), warnings: [`archwright: ${why}: ${describeAll(restricted)}`] };
  }
  const hostnames = hostnamesOf(unable);
  if (hostnames.length === 0) return leftOut('the nodes are not known by name', restricted);
  const copies = Math.max(1, parts.terms?.length ?? 0);
  if (hostnames.length > maxExcludedNodes || hostnames.length * copies > maxWritten) {
    return leftOut(`${hostnames.length} nodes are too many to name`, restricted);
  }
  const nodes = `left out: ${listed(hostnames, (name) => name, maxNamesBytes)}`;
  const text = `${describeAll(pullable)}; ${nodes}`;
  return { hostnames, warnings: [], reasons: [reason('pullable-nodes', text)] };
}

function leftOut(why: string, restricted: readonly Restricted[]): ExcludedNodes {
  const text = `${why}: ${describeAll(restricted)}`;
  return { ...nobody, reasons: [reason('pullable-nodes-left-out', text)] };
}

/** Whether a person chose single nodes: by nodeSelector, or in every required term. */
function namesNode({ nodeSelector, terms }: OwnFields): boolean {
  if (own(nodeSelector, keys.hostnameLabel) !== undefined) return true;
  return (
    terms?.some(
      (term) =>
        pinsNode(term) ||
        term.matchExpressions?.some(({ key, operator }) => key === keys.hostnameLabel && operator === 'In'),
    ) ?? false
  );
}

function groupsIn(lists: readonly (readonly NodeGroup[])[]): readonly NodeGroup[] {
  return [...new Map(lists.flat().map((group) => [group.name, group])).values()];
}

function canRun({ architectures }: NodeGroup, wanted: readonly string[] | undefined): boolean {
  if (architectures.length === 0 || wanted === undefined || wanted.length === 0) return true;
  return architectures.some((architecture) => wanted.includes(architecture));
}

/** What is no label value stands on no node, and would have the pod refused. */
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
  return listed(groups, ({ name }) => printable(name, 20), maxGroupsBytes).replaceAll('; ', ', ');
}
