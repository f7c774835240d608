/**
 * `archwright report`: which pods of a cluster could run on an architecture, and what blocks the rest, by
 * workload or by image. Each image is looked up once, with the pull secrets of the pods that use it.
 */
import { isCode } from '../src/kube/api/errors.ts';
import { openCluster, type Cluster } from './wiring/cluster.ts';
import { untilStopped } from './program/context.ts';
import { flags, type ReportCall } from './report/flags.ts';
import { judgedPods } from './report/judged-pods.ts';
import { pageOutput, type PageOutput } from './report/page-output.ts';
import { asCsv, asJson, asTable, reportOf } from './report/write.ts';
import { exitCodes, Failure } from './program/exit.ts';
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
  const { flags } = invocation;
  const page = await pageOutput(invocation);
  await using opened = new AsyncDisposableStack();
  try {
    return await reportPods(invocation, page, await openCluster(invocation, opened), opened);
  } catch (error) {
    if (!isCode(error, 'forbidden') || flags.publish) throw error;
    const hint = 'use --namespace to select namespaces that you may read';
    throw new Failure(`${error.message}; ${hint}`, exitCodes.unanswered);
  }
}

/** @throws KubeError */
async function reportPods(
  invocation: ReportCall,
  page: PageOutput,
  cluster: Cluster,
  opened: AsyncDisposableStack,
): Promise<number> {
  const { io, say } = invocation;
  const { architecture, by, output, publish, namespace: namespaces } = invocation.flags;
  const { context, kubernetes } = cluster;
  const publishing = publish ? await import('./report/publish/publish.ts') : undefined;
  publishing?.placeOf(context);
  const onNode = await page.prices();
  const { isComplete, ...judged } = await judgedPods(invocation, cluster, { architecture, onNode }, opened);
  const { pods, lookups } = judged;
  if (pods.length === 0 && namespaces.length > 0)
    say(`there are no pods in ${namespaces.join(', ')}`, 'warning');
  const extras = await page.extras({ ...judged, architecture }, cluster);
  const report = reportOf(pods, { architecture, lookups, ...extras });
  const made = new Date();
  const pageText = page.isPage ? await page.text({ report, pods, made }, extras) : '';
  if (publishing) {
    const published = { report, pods, made, page: pageText };
    if (isComplete) return await publishing.publishReport(invocation, context, kubernetes, published);
    throw new Failure('not published, because it is incomplete; the last one stays', exitCodes.unanswered);
  }
  if (page.isPage) await page.write(pageText);
  else if (output === 'json') io.out(asJson(report));
  else io.out(output === 'csv' ? asCsv(report, by) : asTable(report, by));
  if (!page.isPage && output === 'csv') say(`images looked up ${lookups}`);
  if (!isComplete) return exitCodes.unanswered;
  return report.images.some(({ verdict }) => verdict === 'unknown') ? exitCodes.failure : exitCodes.success;
}
