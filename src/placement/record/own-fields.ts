/**
 * A pod's scheduling fields split into what is its own and what an earlier call of ours added. Every rule looks at the
 * pod's own part only, so that a second call decides as the first did.
 */
import type {
  NodeSelectorTerm,
  PodSpec,
  PreferredSchedulingTerm,
  Toleration,
} from '../../kube/api/objects.ts';
import { own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { Recorded } from '../decision.ts';
import { sameTerm, withoutAdded } from '../pod/terms.ts';

export interface Split<Item> {
  readonly own: readonly Item[];
  /** What we added and what is still there. */
  readonly ours: readonly Item[];
}

export interface OwnFields {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required terms; `undefined`: the pod has no required node affinity of its own. */
  readonly terms: readonly NodeSelectorTerm[] | undefined;
  readonly preferred: Split<PreferredSchedulingTerm>;
  readonly tolerations: Split<Toleration>;
}

/**
 * Splits a pod.
 * @param spec as it stands
 * @param recorded what an earlier call added, where it is known
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
      preferred: { own: preferred, ours: [] },
      tolerations: { own: tolerations, ours: [] },
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
  nodeSelector: Readonly<Record<string, string>>,
  pinned: string | undefined,
): Readonly<Record<string, string>> {
  if (pinned === undefined || own(nodeSelector, keys.architectureLabel) !== pinned) return nodeSelector;
  const { [keys.architectureLabel]: _, ...rest } = nodeSelector;
  return rest;
}

/** Takes the last occurrence of each recorded item: ours were appended after the pod's own. */
function split<Item>(
  present: readonly Item[],
  recorded: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): Split<Item> {
  const rest = [...present];
  const ours: Item[] = [];
  for (const item of recorded) {
    const index = rest.findLastIndex((candidate) => same(candidate, item));
    if (index === -1) continue;
    rest.splice(index, 1);
    ours.push(item);
  }
  return { own: rest, ours };
}

export function samePreferred(a: PreferredSchedulingTerm, b: PreferredSchedulingTerm): boolean {
  return a.weight === b.weight && sameTerm(a.preference ?? {}, b.preference ?? {});
}

export function sameToleration(a: Toleration, b: Toleration): boolean {
  return (
    (a.key ?? '') === (b.key ?? '') &&
    (a.operator ?? 'Equal') === (b.operator ?? 'Equal') &&
    (a.value ?? '') === (b.value ?? '') &&
    (a.effect ?? '') === (b.effect ?? '') &&
    (a.tolerationSeconds ?? undefined) === (b.tolerationSeconds ?? undefined)
  );
}
