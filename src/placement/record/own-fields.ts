/**
 * A pod's own scheduling fields, without the additions of an earlier call. The rules read only these, so that a second call
 * decides like the first.
 */
import type { PodSpec, PreferredSchedulingTerm } from '../../kube/api/objects.ts';
import { own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { OwnFields, Recorded, Split } from '../decision.ts';
import { sameTerm } from '../pod/terms.ts';
import { sameToleration } from '../pod/tolerations.ts';
import { withoutAdded } from './own-terms.ts';

/**
 * Splits the scheduling fields of a pod.
 * @param recorded the additions of an earlier call, if any
 */
export function ownFieldsOf(spec: PodSpec, recorded: Recorded | undefined): OwnFields {
  const affinity = spec.affinity?.nodeAffinity;
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required ? (required.nodeSelectorTerms ?? []) : undefined;
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const tolerations = spec.tolerations ?? [];
  const nodeSelector = spec.nodeSelector ?? {};
  if (recorded === undefined) {
    return {
      nodeSelector,
      terms,
      preferred: { own: preferred, added: [] },
      tolerations: { own: tolerations, added: [] },
    };
  }
  const { added } = recorded;
  return {
    nodeSelector: withoutPin(nodeSelector, added.pinned),
    terms: withoutAdded(terms, added),
    preferred: split(preferred, added.preferred, samePreferred),
    tolerations: split(tolerations, added.tolerations, sameToleration),
  };
}

function withoutPin(
  nodeSelector: OwnFields['nodeSelector'],
  pinned: string | undefined,
): OwnFields['nodeSelector'] {
  if (pinned === undefined || own(nodeSelector, keys.architectureLabel) !== pinned) return nodeSelector;
  const { [keys.architectureLabel]: _, ...rest } = nodeSelector;
  return rest;
}

/** Takes the last occurrence of each recorded item: additions come after the pod's own items. */
function split<Item>(
  present: readonly Item[],
  recorded: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): Split<Item> {
  const rest = [...present];
  const added: Item[] = [];
  for (const item of recorded) {
    const index = rest.findLastIndex((candidate) => same(candidate, item));
    if (index === -1) continue;
    rest.splice(index, 1);
    added.push(item);
  }
  return { own: rest, added };
}

export function samePreferred(a: PreferredSchedulingTerm, b: PreferredSchedulingTerm): boolean {
  return a.weight === b.weight && sameTerm(a.preference ?? {}, b.preference ?? {});
}
