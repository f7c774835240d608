/** What `--newer-tags` needs of this machine: endpoints and credentials as in `archwright inspect`. */
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { ClusterContext } from '../explain/cluster-context.ts';
import { createProgress } from '../program/progress.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openInspection } from '../wiring/inspection.ts';
import { findNewerTags } from './newer-tags.ts';
import type { JudgedPod } from './rows.ts';

/** @returns by image as written in the pods: the same image with a newer tag that has the architecture */
export async function searchNewerTags(
  { io, stop }: Pick<Invocation, 'io' | 'stop'>,
  { context }: Pick<ClusterContext, 'context'>,
  judged: {
    readonly pods: readonly JudgedPod[];
    readonly architecture: string;
    readonly pullSecrets: PullSecrets;
  },
): Promise<ReadonlyMap<string, string>> {
  const { configuration, dockerConfigs, log } = context;
  const progress = createProgress(io);
  const problems = new Set<string>();
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs,
    env: io.env,
    log,
    stop,
  });
  try {
    return await findNewerTags(judged.pods, {
      ...judged,
      tags: inspection.tags,
      inspector: inspection.inspector,
      stop,
      onProgress: (done, of) => progress.show(`newer tags of ${done} of ${of} images`),
      onProblem: (message) => {
        progress.end();
        if (!problems.has(message)) io.err(`archwright: warning: ${message}\n`);
        problems.add(message);
      },
    });
  } finally {
    progress.end();
    await inspection.close();
  }
}
