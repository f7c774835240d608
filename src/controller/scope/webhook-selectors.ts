/**
 * The pods that our webhook is called for, by the selectors of the webhook configuration. Pods that these leave out are out of
 * scope: they are not moved and get no tolerations, because their successors would not be placed.
 */
import { readSelector, selects, type Selector } from '../../policy/effective/label-selector.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import { isObject, readWebhooksFile, type Webhook } from '../webhook-configuration/webhooks-file.ts';

/** Whether the webhook is called when a pod like this is created. */
export type InScope = (
  pod: Pick<RunningPod, 'namespace' | 'labels'>,
  namespaceLabels: Readonly<Record<string, string>>,
) => boolean;

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
}: Pick<Leading, 'configuration' | 'clock' | 'log'>): () => Promise<InScope> {
  let last: { readonly at: number; readonly sees: InScope } | undefined;
  let logged = '';
  return async () => {
    const { webhooksFile } = configuration();
    if (webhooksFile === undefined) return everything;
    if (last && clock.monotonic() - last.at < keepMs) return last.sees;
    let sees = last?.sees ?? everything;
    try {
      sees = seenBy(await readWebhooksFile(webhooksFile));
      logged = '';
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== logged)
        log.warn({ problem }, 'the webhooks file cannot be read, so the scope of the webhook is not known');
      logged = problem;
    }
    last = { at: clock.monotonic(), sees };
    return sees;
  };
}

/** The pods that these webhooks are called for. Match conditions (CEL) are not evaluated. */
export function seenBy(webhooks: readonly Webhook[]): InScope {
  const selectors = webhooks.filter(isForNewPods).map(({ namespaceSelector, objectSelector }) => ({
    namespaces: selectorOf(namespaceSelector),
    objects: selectorOf(objectSelector),
  }));
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
      isObject(rule) &&
      has(rule['operations'], 'CREATE', '*') &&
      has(rule['apiGroups'], '', '*') &&
      has(rule['resources'], 'pods', '*', '*/*'),
  );
}

function has(list: unknown, ...wanted: readonly string[]): boolean {
  return Array.isArray(list) && list.some((each: unknown) => wanted.some((one) => one === each));
}
