/**
 * Running pods that the webhook skips, and will skip again when they are replaced: they opted out, the
 * selectors of the webhook configuration exclude them, or nothing about them could be decided. Features that
 * change running pods check this first, because successors of skipped pods would not be placed.
 */
import * as v from 'valibot';
import type { ObjectMeta } from '../../kube/api/objects.ts';
import { skipReasonOf } from '../../placement/rules/skip.ts';
import { labelSelector, selects, type Selector } from '../../policy/resources/schemas.ts';
import type { RunningPod } from '../state/cached.ts';
import type { LeaderContext } from '../lead/feature.ts';
import type { Webhook } from '../state/webhooks-file.ts';
import { isRecord } from '../../names/values.ts';

/**
 * Input of the webhook's decision about a pod, from the leader's caches.
 * @param metadata of a pod: its labels, and for rollouts its owner
 */
export function contextOf(
  { caches, policies, nodeClasses }: Pick<LeaderContext, 'caches' | 'policies' | 'nodeClasses'>,
  namespace: string,
  { labels, ownerReferences: owners }: Pick<ObjectMeta, 'labels' | 'ownerReferences'>,
) {
  const namespaceLabels = caches.namespaces.get('', namespace) ?? {};
  const policy = policies.policyOf({ namespace, namespaceLabels, labels, owners });
  const nodes = nodeClasses();
  return { namespace, namespaceLabels, policy, ...(nodes && { nodes }) };
}

/** The pod without its required node affinity. */
export function podOf({ labels, annotations, os, nodeChoice, images }: RunningPod) {
  const containers = images.map(({ image, pullPolicy, usedBy }) => {
    return { name: usedBy, image, ...(pullPolicy && { imagePullPolicy: pullPolicy }) };
  });
  return {
    metadata: { labels, annotations },
    spec: { containers, os: { name: os }, nodeSelector: nodeChoice?.nodeSelector ?? {} },
  };
}

/** @returns whether a pod is skipped, by what is in force now. Without a webhooks file, the webhook is called for all */
export function skippedPods(
  leader: Pick<LeaderContext, 'caches' | 'policies' | 'nodeClasses' | 'webhooks'>,
): (pod: RunningPod) => boolean {
  const webhooks = leader.webhooks?.current();
  const isInScope = webhooks && scopeOf(webhooks);
  return (pod) => {
    const context = contextOf(leader, pod.namespace, pod);
    if (isInScope?.(pod, context.namespaceLabels) === false) return true;
    return skipReasonOf({ ...context, pod: podOf(pod) }) !== undefined;
  };
}

/** @returns whether these webhooks are called for a new pod. Match conditions (CEL) are not evaluated */
export function scopeOf(webhooks: readonly Webhook[]) {
  const selectors = webhooks.filter(isForNewPods).map(({ namespaceSelector, objectSelector }) => {
    return { namespaces: selectorOf(namespaceSelector), objects: selectorOf(objectSelector) };
  });
  return (
    { namespace, labels }: Pick<RunningPod, 'namespace' | 'labels'>,
    namespaceLabels: Readonly<Record<string, string>>,
  ): boolean =>
    selectors.some(
      ({ namespaces, objects }) =>
        selects(namespaces, { ...namespaceLabels, 'kubernetes.io/metadata.name': namespace }) &&
        selects(objects, labels),
    );
}

/** A selector that is not valid selects everything; the API server refuses it. */
function selectorOf(value: unknown): Selector {
  const { success, output } = v.safeParse(labelSelector, value ?? {});
  return success ? output : [];
}

function isForNewPods({ rules }: Webhook): boolean {
  if (!Array.isArray(rules)) return false;
  return rules.some(
    (rule: unknown) =>
      isRecord(rule) &&
      has(rule['operations'], 'CREATE', '*') &&
      has(rule['apiGroups'], '', '*') &&
      has(rule['resources'], 'pods', '*', '*/*'),
  );
}

function has(list: unknown, ...wanted: readonly string[]): boolean {
  return Array.isArray(list) && list.some((each: unknown) => wanted.some((one) => one === each));
}
