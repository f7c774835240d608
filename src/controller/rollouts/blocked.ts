/**
 * Why a workload cannot be moved: the webhook's decision for a pod like its newest one, without the rollout. What blocks it may pass, for
 * example when an image becomes known.
 */
import { decide } from '../../placement/decide.ts';
import type { PlacementDecision } from '../../placement/decision.ts';
import { imagesOf } from '../../placement/pod/images.ts';
import { permittedBy } from '../../placement/pod/terms.ts';
import { isRecordedWidened } from '../../placement/record/read.ts';
import { listed, maxImageBytes, printable } from '../../names/printable.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import { factsOf } from '../scope/pulled-images.ts';

export interface Movable {
  /** Why it cannot be moved; `undefined`: it can. */
  readonly blocked?: string;
  /** An image that failed on the architecture, as `exec-format/` noted it. */
  readonly broken?: string;
}

/** @throws KubeError */
export async function movableOf(leading: Leading, pod: RunningPod, architecture: string): Promise<Movable> {
  const { caches, policies } = leading;
  const { namespace, labels, annotations, nodeChoice, images } = pod;
  const namespaceLabels = caches.namespaces.get('', namespace)?.labels ?? {};
  const nodes = leading.nodeClasses?.();
  const { terms: nodeSelectorTerms, nodeSelector = {} } = nodeChoice ?? {};
  const required = nodeSelectorTerms && {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
  };
  const containers = images.map(({ image, pullPolicy, usedBy }) => {
    return { name: usedBy, image, ...(pullPolicy && { imagePullPolicy: pullPolicy }) };
  });
  const like = {
    metadata: { ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: {
      nodeSelector,
      containers,
      os: { name: pod.os },
      ...(required && { affinity: { nodeAffinity: required } }),
    },
  };
  const facts = await factsOf(leading, pod, imagesOf(like.spec));
  const decision = decide({
    pod: like,
    namespace,
    namespaceLabels,
    policy: policies.policyOf({ namespace, namespaceLabels, labels }),
    facts: (image) => facts.get(image),
    ...(nodes && { nodes }),
    // Its record counts without a seal, which needs its `generateName`.
    waiting: true,
  });
  const failed = decision.images.find(
    ({ facts: of }) =>
      of?.brokenOn?.includes(architecture) === true ||
      (of?.requiredLevel !== undefined && architecture === 'amd64'),
  );
  // New pods of a workload that is in a rollout are not widened.
  const blocked = isRecordedWidened(like) ? ownChoice : blockedBy(decision, architecture);
  return {
    ...(blocked !== undefined && { blocked }),
    ...(failed && { broken: `${printable(failed.image, maxImageBytes)} cannot run there` }),
  };
}

const ownChoice = 'its pods constrain the architecture themselves';

function blockedBy(
  { outcome, required, images, own }: PlacementDecision,
  architecture: string,
): string | undefined {
  if (outcome === 'skipped') return 'archwright skips its pods';
  if (outcome === 'own-constraint') return ownChoice;
  if (outcome === 'unconstrained') return 'its images do not say which architectures they have';
  if (outcome !== 'placed') {
    const unknown = images.find((each) => each.unknown !== undefined);
    return unknown
      ? `${printable(unknown.image, maxImageBytes)} is not known yet`
      : 'its images share no architecture';
  }
  if (!permittedBy(own?.terms, architecture)) return `its own node affinity excludes ${architecture}`;
  if (required?.includes(architecture) === true) return undefined;
  const lacking = images.filter((each) => each.architectures?.includes(architecture) === false);
  const names = listed(lacking, ({ image }) => printable(image, maxImageBytes), 300);
  return names === '' ? `a policy excludes ${architecture}` : `${names}: no ${architecture}`;
}
