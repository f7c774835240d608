/**
 * Labels amd64 nodes with the CPU level that their agents report (`amd64LevelLabels`; default: off). Pods can
 * require the label. A node without a report keeps its label. If the setting is turned off, the labels go.
 */
import { changeEach, labelPatch } from '../../../kube/api/change.ts';
import type { Patch } from '../../../kube/api/client.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { keys } from '../../../names/keys.ts';
import { labeledLevels } from '../../../nodes/amd64-level.ts';
import type { NodeReport } from '../../../nodes/node-report.ts';
import type { CachedNode } from '../../state/cached.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';

/** Agents report about once a minute. */
const resyncMs = 15_000;

export const amd64Levels: Feature = {
  name: 'amd64-levels',
  resyncMs,
  inRounds: true,
  leftovers: {
    nodes: {
      step: 'CPU levels',
      what: 'CPU level',
      labelSelector: keys.amd64Level,
      removal:
        () =>
        ({ metadata }) =>
          labeledLevels(metadata?.labels ?? {}).own === undefined ? undefined : levelLabelPatch(undefined),
    },
  },
  start: (leader) => ({ keys: () => ['all'], reconcile: () => labelLevels(leader) }),
};

/** @param level `undefined` removes it */
function levelLabelPatch(level: number | undefined): Patch {
  return labelPatch(keys.amd64Level, level === undefined ? null : `v${level}`);
}

/** @throws KubeError if the rest has to be tried again */
export async function labelLevels({
  caches,
  fleet,
  client,
  configuration,
  signal,
  log,
}: LeaderContext): Promise<void> {
  const isOn = configuration().amd64LevelLabels;
  const reports = fleet?.nodeReports();
  const changes = [...caches.nodes.values()].flatMap((node) => {
    const present = node.classified?.levels.own;
    const wanted = isOn ? (levelOf(node, reports) ?? present) : undefined;
    return wanted === present || node.deleting ? [] : [{ name: node.name, wanted }];
  });
  const change = async ({ name, wanted }: (typeof changes)[number]): Promise<boolean> => {
    await ignoring('not-found', client.patch(paths.nodes(name), levelLabelPatch(wanted), { signal }));
    log.info({ node: name, level: wanted ?? 'none' }, 'the label for the CPU level of the node was changed');
    return true;
  };
  await changeEach(changes, change, signal);
}

function levelOf(
  { name, architecture }: CachedNode,
  reports: ReadonlyMap<string, NodeReport> | undefined,
): NodeReport['amd64Level'] {
  return architecture === 'amd64' ? reports?.get(name)?.amd64Level : undefined;
}
