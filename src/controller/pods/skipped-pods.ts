/**
 * Running pods that the webhook skips, and will skip again when they are replaced: they opted out, the
 * selectors of the webhook configuration exclude them, or nothing about them could be decided. Features that
 * change running pods check this first, because successors of skipped pods would not be placed.
 */
import { skipReasonOf } from '../../placement/rules/skip.ts';
import { readSelector, selects, type Selector } from '../../policy/effective/label-selector.ts';
import type { RunningPod } from '../state/cached.ts';
import type { LeaderContext } from '../lead/leader-context.ts';
import { readWebhooksFile, type Webhook } from '../state/webhooks-file.ts';
import { contextOf, podOf } from './decided-pod.ts';
import { isRecord } from '../../names/values.ts';
import { messageOf } from '../../names/printable.ts';

/** Whether the webhook is called when a pod like this is created. */
export type InScope = (
  pod: Pick<RunningPod, 'namespace' | 'labels'>,
  namespaceLabels: Readonly<Record<string, string>>,
) => boolean;

/** @returns reads the configuration that is in force now, and returns whether a pod is skipped */
export function createSkippedPods(
  leading: Pick<LeaderContext, 'caches' | 'policies' | 'nodeClasses' | 'configuration' | 'clock' | 'log'>,
): () => Promise<(pod: RunningPod) => boolean> {
  const scopeNow = createWebhookScope(leading);
  return async () => {
    const isInScope = await scopeNow();
    return (pod) => {
      const namespaceLabels = leading.caches.namespaces.get('', pod.namespace)?.labels ?? {};
      if (!isInScope(pod, namespaceLabels)) return true;
      const context = contextOf(leading, pod.namespace, pod);
      return skipReasonOf({ ...context, pod: podOf(pod) }) !== undefined;
    };
  };
}

/** The file is the chart's, and seldom changes. */
const keepMs = 10_000;

const everything: InScope = () => true;

/**
 * Reads the webhooks file (`webhooksFile`) now and then.
 * @returns the scope now; everything if no file is named, or it could not be read yet
 */
export function createWebhookScope({
  configuration,
  clock,
  log,
}: Pick<LeaderContext, 'configuration' | 'clock' | 'log'>): () => Promise<InScope> {
  let scope = everything;
  let readAt = Number.NEGATIVE_INFINITY;
  let logged = '';
  return async () => {
    const { webhooksFile } = configuration();
    if (webhooksFile === undefined) return everything;
    if (clock.monotonic() - readAt < keepMs) return scope;
    try {
      scope = scopeOf(await readWebhooksFile(webhooksFile));
      logged = '';
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== logged)
        log.warn({ problem }, 'the webhooks file cannot be read, so the scope of the webhook is not known');
      logged = problem;
    }
    readAt = clock.monotonic();
    return scope;
  };
}

/** The pods that these webhooks are called for. Match conditions (CEL) are not evaluated. */
export function scopeOf(webhooks: readonly Webhook[]): InScope {
  const selectors = webhooks.filter(isForNewPods).map(({ namespaceSelector, objectSelector }) => {
    return { namespaces: selectorOf(namespaceSelector), objects: selectorOf(objectSelector) };
  });
  return ({ namespace, labels }, namespaceLabels) =>
    selectors.some(
      ({ namespaces, objects }) =>
        selects(namespaces, { ...namespaceLabels, 'kubernetes.io/metadata.name': namespace }) &&
        selects(objects, labels),
    );
}

/** A selector that is not valid selects everything; the API server refuses it. */
function selectorOf(value: unknown): Selector {
  const problems: string[] = [];
  const selector = readSelector(value ?? {}, '', problems);
  return problems.length === 0 ? selector : [];
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
