/**
 * `archwright report`: which pods of a cluster could run on an architecture, and what blocks the rest, by
 * workload or by image. Each image is looked up once, with the pull secrets of the pods that use it.
 */
import { KubeError } from '../src/kube/api/errors.ts';
import { unknownArchitecture } from '../src/names/architecture.ts';
import { clusterFlags, openClusterContext, type ClusterContext } from './explain/cluster-context.ts';
import { cacheFlags } from './wiring/cached-lookups.ts';
import type { Kubernetes } from './wiring/kubernetes.ts';
import { untilStopped } from './program/context.ts';
import { judgedPods } from './report/judged-pods.ts';
import { pageOutput, type PageOutput } from './report/page-output.ts';
import { asCsv, asJson, asTable, reportOf, type By } from './report/write.ts';
import { choiceOf, exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS]',
  description:
    'Shows which pods of a cluster could run on an architecture, and what blocks the rest: by workload ' +
    'or by image, with the CPU and memory that they request. Reads pods, their owners and nodes from the ' +
    'cluster of your kubeconfig; archwright’s controller there looks up the images. Changes nothing ' +
    'without `--publish`. Exit code: 0 if every image is known or the report is published, 1 if not, 2 ' +
    'for wrong usage, 3 if the cluster does not respond or images could not be looked up.',
  settings: 'explain',
  flags: {
    ...clusterFlags,
    architecture: { value: 'NAME', short: 'a', help: 'Target architecture. Default: arm64.' },
    by: { value: 'workload|image', help: 'Rows of a table or CSV. Default: workload.' },
    namespace: {
      value: 'NAME',
      short: 'n',
      help: 'Only pods of this namespace. Can be repeated. Default: all namespaces.',
    },
    output: { value: 'table|csv|json', short: 'o', help: 'Output format. Default: table.' },
    html: {
      value: 'FILE',
      help: 'Writes the report as one page for a browser. `-`: standard output.',
    },
    publish: {
      help: 'Writes the report and the page into a ConfigMap of archwright’s namespace, and OpenReports objects if the cluster has their definitions.',
    },
    prices: { value: 'FILE', help: 'Prices of node types, for the savings in the page and in JSON.' },
    'newer-tags': {
      help: 'Looks for newer tags that have the architecture, for at most 50 images, from this machine.',
    },
    ...cacheFlags,
  },
  run: untilStopped(run),
};

interface Wanted {
  readonly architecture: string;
  readonly by: By;
  readonly output: 'table' | 'csv' | 'json';
  readonly page: PageOutput | undefined;
}

/** @throws UsageError */
async function wantedOf(invocation: Invocation): Promise<Wanted> {
  const output = choiceOf(invocation, 'output', ['table', 'csv', 'json']);
  const by = choiceOf(invocation, 'by', ['workload', 'image']);
  const architecture = invocation.flags.get('architecture')?.at(-1) ?? 'arm64';
  const mistake = unknownArchitecture(architecture);
  if (mistake !== undefined) throw new UsageError(`--architecture: ${mistake}`);
  return { architecture, by, output, page: await pageOutput(invocation) };
}

async function run(invocation: Invocation): Promise<number> {
  const { io, flags, stop } = invocation;
  const wanted = await wantedOf(invocation);
  await using opened = new AsyncDisposableStack();
  try {
    const clusterContext = await openClusterContext(invocation, 'needed', opened);
    const { kubernetes } = clusterContext;
    if (!kubernetes) throw new UsageError('no cluster found; set --kubeconfig');
    return await reportPods(invocation, wanted, { ...clusterContext, kubernetes }, opened);
  } catch (error) {
    if (!(error instanceof KubeError) || stop.aborted) throw error;
    const hint =
      error.code === 'forbidden' && !flags.has('publish')
        ? '; use --namespace to select namespaces that you may read'
        : '';
    io.err(`archwright report: ${error.message}${hint}\n`);
    return exitCodes.unanswered;
  }
}

/** @throws KubeError */
async function reportPods(
  invocation: Invocation,
  { architecture, by, output, page }: Wanted,
  clusterContext: ClusterContext & { readonly kubernetes: Kubernetes },
  opened: AsyncDisposableStack,
): Promise<number> {
  const { io, flags } = invocation;
  const { context, kubernetes } = clusterContext;
  const publishing = flags.has('publish') ? await import('./report/publish/publish.ts') : undefined;
  publishing?.placeOf(context);
  const onNode = await page?.prices();
  const { isComplete, ...judged } = await judgedPods(
    invocation,
    clusterContext,
    { architecture, onNode },
    opened,
  );
  const { pods, lookups } = judged;
  const namespaces = flags.get('namespace') ?? [];
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
