/**
 * `archwright report`: which pods of a cluster could run on an architecture, and what blocks the rest, by
 * workload or by image. Each image is looked up once, with the pull secrets of the pods that use it.
 */
import { KubeError } from '../src/kube/api/errors.ts';
import { openClusterContext, type ClusterContext } from './explain/cluster-context.ts';
import type { Kubernetes } from './wiring/kubernetes.ts';
import { untilStopped } from './program/context.ts';
import { flags, type ReportCall } from './report/flags.ts';
import { judgedPods } from './report/judged-pods.ts';
import { pageOutput, type PageOutput } from './report/page-output.ts';
import { asCsv, asJson, asTable, reportOf } from './report/write.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import type { Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS]',
  description:
    'Shows which pods of a cluster could run on an architecture, and what blocks the rest: by workload ' +
    'or by image, with the CPU and memory that they request. Reads pods, their owners and nodes from the ' +
    'cluster of your kubeconfig; archwright’s controller there looks up the images. Changes nothing ' +
    'without `--publish`. Exit code: 0 if every image is known or the report is published, 1 if not, 2 ' +
    'for wrong usage, 3 if the cluster does not respond or images could not be looked up.',
  settings: 'explain',
  flags,
  run: untilStopped(run),
};

async function run(invocation: ReportCall): Promise<number> {
  const { io, flags, stop } = invocation;
  const page = await pageOutput(invocation);
  await using opened = new AsyncDisposableStack();
  try {
    const clusterContext = await openClusterContext(invocation, 'needed', opened);
    const { kubernetes } = clusterContext;
    if (!kubernetes) throw new UsageError('no cluster found; set --kubeconfig');
    return await reportPods(invocation, page, { ...clusterContext, kubernetes }, opened);
  } catch (error) {
    if (!(error instanceof KubeError) || stop.aborted) throw error;
    const hint =
      error.code === 'forbidden' && !flags.publish
        ? '; use --namespace to select namespaces that you may read'
        : '';
    io.err(`archwright report: ${error.message}${hint}\n`);
    return exitCodes.unanswered;
  }
}

/** @throws KubeError */
async function reportPods(
  invocation: ReportCall,
  page: PageOutput | undefined,
  clusterContext: ClusterContext & { readonly kubernetes: Kubernetes },
  opened: AsyncDisposableStack,
): Promise<number> {
  const { io } = invocation;
  const { architecture, by, output, publish, namespace: namespaces } = invocation.flags;
  const { context, kubernetes } = clusterContext;
  const publishing = publish ? await import('./report/publish/publish.ts') : undefined;
  publishing?.placeOf(context);
  const onNode = await page?.prices();
  const { isComplete, ...judged } = await judgedPods(
    invocation,
    clusterContext,
    { architecture, onNode },
    opened,
  );
  const { pods, lookups } = judged;
  if (pods.length === 0 && namespaces.length > 0)
    io.err(`archwright: warning: there are no pods in ${namespaces.join(', ')}\n`);
  const extras = (await page?.extras({ ...judged, architecture }, clusterContext)) ?? {};
  const report = reportOf(pods, { architecture, lookups, ...extras });
  const made = new Date();
  const pageText = page?.isPage ? await page.text({ architecture, lookups, pods, made }, extras) : '';
  if (publishing) {
    const published = { report, pods, made, page: pageText };
    if (isComplete) return await publishing.publishReport(invocation, context, kubernetes, published);
    io.err('archwright report: not published, because it is incomplete; the last one stays\n');
    return exitCodes.unanswered;
  }
  if (page?.isPage) await page.write(pageText);
  else if (output === 'json') io.out(asJson(report));
  else io.out(output === 'csv' ? asCsv(report, by) : asTable(report, by));
  if (page === undefined && output === 'csv') io.err(`archwright report: images looked up ${lookups}\n`);
  if (!isComplete) return exitCodes.unanswered;
  return report.images.some(({ verdict }) => verdict === 'unknown') ? exitCodes.failure : exitCodes.success;
}
