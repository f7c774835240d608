/**
 * A model of the updates of a gated pod that the API server accepts (KEP-3838), measured on a real one. It
 * shares no code with the program. `test/e2e/cluster/gated-updates.test.ts` compares it with a real server.
 */
import { isDeepStrictEqual as same } from 'node:util';
import type { NodeSelectorTerm, Pod, PodSpec } from '../../src/kube/api/objects.ts';

export function gatedUpdateFaults(before: Pod, after: Pod): readonly string[] {
  return [
    ...selectorFaults(before.spec, after.spec),
    ...termFaults(before.spec, after.spec),
    ...tolerationFaults(before.spec, after.spec),
    ...gateFaults(before.spec, after.spec),
    ...otherFaults(before, after),
  ];
}

function selectorFaults(before: PodSpec, after: PodSpec): readonly string[] {
  return Object.entries(before.nodeSelector ?? {})
    .filter(([key, value]) => after.nodeSelector?.[key] !== value)
    .map(([key]) => `nodeSelector ${key}: only additions`);
}

function requiredTerms(spec: PodSpec): readonly NodeSelectorTerm[] {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
}

function termFaults(before: PodSpec, after: PodSpec): readonly string[] {
  const old = requiredTerms(before);
  const now = requiredTerms(after);
  if (old.length === 0) return [];
  if (old.length !== now.length) return [`terms: ${old.length} became ${now.length}`];
  return old.flatMap((term, index) => {
    const changed = now[index] ?? {};
    const isEmpty = count(term) === 0;
    if (isEmpty) return count(changed) === 0 ? [] : [`term ${index}: an empty one stays empty`];
    return isPrefix(term.matchExpressions, changed.matchExpressions) &&
      isPrefix(term.matchFields, changed.matchFields)
      ? []
      : [`term ${index}: only additions at the end`];
  });
}

function count({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): number {
  return matchExpressions.length + matchFields.length;
}

function isPrefix(old: readonly unknown[] = [], now: readonly unknown[] = []): boolean {
  return same(old, now.slice(0, old.length));
}

function tolerationFaults({ tolerations: old }: PodSpec, { tolerations: now }: PodSpec): readonly string[] {
  const bare = (list: PodSpec['tolerations']): object[] =>
    (list ?? []).map((toleration) => ({ ...toleration, tolerationSeconds: undefined }));
  const left = bare(now);
  return bare(old)
    .filter((toleration) => !left.some((other) => same(other, toleration)))
    .map(({ ...toleration }) => `toleration ${JSON.stringify(toleration)}: gone or changed`);
}

function gateFaults({ schedulingGates: old }: PodSpec, { schedulingGates: now }: PodSpec): readonly string[] {
  return (now ?? [])
    .filter(({ name }) => !old?.some((gate) => gate.name === name))
    .map(({ name }) => `gate ${name}: only deletion`);
}

/** All labels and the rest of the spec of a gated pod stay; preferred terms and annotations are free. */
function otherFaults(before: Pod, after: Pod): readonly string[] {
  const rest = ({ spec }: Pod): object => {
    const { nodeSelector: _a, tolerations: _b, schedulingGates: _c, affinity, ...others } = spec;
    const { nodeAffinity: _d, ...otherAffinity } = affinity ?? {};
    return { ...others, otherAffinity };
  };
  return same(rest(before), rest(after)) ? [] : ['another field changed'];
}
