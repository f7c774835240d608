/** Takes our taints off all nodes, for `archwright clean`: with a controller, without one, and again after an interruption. */
import { concurrently } from '../../async/concurrently.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Node } from '../../kube/api/objects.ts';
import { createPageSize } from '../../kube/api/page-size.ts';
import { wait } from '../../async/wait.ts';
import { changeNode } from './change-node.ts';
import { taintPatch } from './own-taint.ts';
import { paths } from '../../kube/api/paths.ts';

export interface RemoveTaintsOptions {
  readonly client: KubeClient;
  /** Keys of the settings; what the nodes' annotations record is removed besides. */
  readonly keys: readonly string[];
  readonly signal: AbortSignal;
  /** Only says what it would do. */
  readonly dryRun?: boolean;
  /** Hears of each node that is done, or of a dry run would be changed. */
  readonly progress?: (node: string) => void;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface RemovedTaints {
  /** Nodes that were changed; of a dry run those that would be. */
  readonly nodes: readonly string[];
  /** Nodes that could not be changed, and why. */
  readonly failed: readonly { readonly node: string; readonly error: KubeError }[];
}

interface Page {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly Node[];
}

const workers = 8;
const tries = 6;
const pause = { firstMs: 500, mostMs: 30_000 };

/**
 * Removes them.
 * @throws KubeError where the nodes cannot be listed, or the signal's reason
 */
export async function removeTaints(options: RemoveTaintsOptions): Promise<RemovedTaints> {
  const { client, keys, signal, dryRun = false, progress } = options;
  const names = await nodesWithTaints(options);
  const nodes: string[] = [];
  const failed: { node: string; error: KubeError }[] = [];
  await concurrently(names, workers, async (node) => {
    try {
      if (!dryRun)
        await persistently(options, () => changeNode(node, () => undefined, { client, signal, keys }));
      nodes.push(node);
      progress?.(node);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubeError)) throw error;
      failed.push({ node, error });
    }
  });
  return { nodes, failed };
}

async function nodesWithTaints(options: RemoveTaintsOptions): Promise<readonly string[]> {
  const { client, keys, signal } = options;
  const found: string[] = [];
  const pageSize = createPageSize();
  let token = '';
  do {
    const from = token === '' ? {} : { continue: token };
    const page = await persistently(options, () =>
      pageSize.read((limit, maxBytes) =>
        client.get<Page>(paths.nodes(), { signal, query: { limit, ...from }, maxBytes }),
      ),
    );
    for (const node of page.items ?? []) {
      const { name } = node.metadata ?? {};
      if (name !== undefined && taintPatch(node, undefined, keys)) found.push(name);
    }
    token = page.metadata?.continue ?? '';
  } while (token !== '');
  return found;
}

/** What can help from trying again is tried again, with growing pauses. */
async function persistently<T>(
  { signal, sleep = wait }: RemoveTaintsOptions,
  run: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    try {
      return await run();
    } catch (error) {
      const helps = error instanceof KubeError && (error.temporary || error.code === 'conflict');
      if (!helps || error.code === 'gone' || attempt === tries) throw error;
      const ms = Math.max(pause.firstMs * 2 ** (attempt - 1), error.retryAfterMs ?? 0);
      await sleep(Math.min(ms, pause.mostMs), signal);
    }
  }
}
