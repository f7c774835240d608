/** `--newer-tags` on this machine: endpoints and credentials as in `inspect`, and the cache of `check` for image facts. */
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Cluster } from '../wiring/cluster.ts';
import { createProgress } from '../program/progress.ts';
import type { ReportCall } from './flags.ts';
import { openCachedLookups } from '../wiring/cached-lookups.ts';
import { findNewerTags, type NewerTags } from './newer-tags.ts';
import type { JudgedPod } from './rows.ts';
import { TagLists } from './tag-lists.ts';

export async function searchNewerTags(
  invocation: Pick<ReportCall, 'flags' | 'io' | 'say' | 'stop'>,
  { context }: Pick<Cluster, 'context'>,
  judged: {
    readonly pods: readonly JudgedPod[];
    readonly architecture: string;
    readonly pullSecrets: PullSecrets;
  },
): Promise<NewerTags> {
  const { io, say, stop } = invocation;
  const progress = createProgress(io);
  await using opened = new AsyncDisposableStack();
  const { cache, tags } = await openCachedLookups(invocation, context, opened);
  try {
    return await findNewerTags(judged.pods, {
      ...judged,
      lists: new TagLists(tags),
      inspector: { lookup: (request, options) => cache.get(request, options) },
      stop,
      onProgress: (done, of) => progress.show(`newer tags of ${done} of ${of} images`),
      onProblem: (problem) => say(`newer tags: ${problem}`, 'warning'),
    });
  } finally {
    progress.end();
  }
}
