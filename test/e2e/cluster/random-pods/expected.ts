/** What is right for a pod in a cluster, where the times of lookups leave several results. */
import type { Case } from '../../../support/judge/generate.ts';
import { judge } from '../../../support/judge/judge.ts';
import { boundOf, runsOn, selectsArchitecture } from '../../../support/judge/model.ts';
import type { ModelPolicy } from '../../../support/judge/world.ts';

export interface Expected {
  readonly may: readonly string[];
  readonly must: boolean;
  /** Nodes that its images, author and settings allow: a DaemonSet has a pod on each. */
  readonly able: readonly string[];
  readonly mayBeRefused: boolean;
}

/** The expected result for a pod. @param wasGated whether archwright gated it */
export function expectedOf(one: Case, policy: ModelPolicy, wasGated: boolean): Expected {
  // Its images are known, or it waits until they are.
  const { nodes, mayBeFewer } = judge(one, policy, 'waiting');
  if (!selectsArchitecture(one.pod.spec)) {
    const mayBeRefused = boundOf(one, policy)?.length === 0;
    const able = nodes.filter((name) => runsOn(one, name) !== 'no');
    const must = able.length > 0 && !mayBeRefused && !(wasGated && mayBeFewer);
    return { may: nodes, must, able, mayBeRefused };
  }
  // It is not gated, so an image that is not known at once may exclude nothing.
  const early = judge(one, policy, 'creation').nodes;
  const able = nodes.filter((name) => early.includes(name) && runsOn(one, name) !== 'no');
  const may = new Set([...timingsOf(one).flatMap((each) => judge(each, policy, 'creation').nodes), ...nodes]);
  return { may: [...may], must: able.length > 0, able, mayBeRefused: false };
}

/** The pod with any of its slow images known in time, and the others not. */
function timingsOf(one: Case): readonly Case[] {
  const start: readonly Case[] = [one];
  return one.images.reduce((cases, image, index) => {
    if (image.knowledge === 'at once' || image.knowledge === 'never') return cases;
    const known = { ...image, knowledge: 'at once' } as const;
    return cases.flatMap((each) => [each, { ...each, images: each.images.with(index, known) }]);
  }, start);
}

/** Of a DaemonSet with the pod as template, whose images are known at once. */
export function expectedOfDaemon(one: Case, policy: ModelPolicy): Expected {
  const { nodes, result } = judge(one, policy, 'DaemonSet');
  const able = nodes.filter((name) => runsOn(one, name) !== 'no');
  return { may: nodes, must: able.length > 0, able, mayBeRefused: result === 'refused' };
}
