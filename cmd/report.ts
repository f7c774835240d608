/** `archwright report`: which pods could run on an architecture, and what blocks the rest. */
import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeProblem } from '../src/files/read.ts';
import { isCode } from '../src/kube/api/errors.ts';
import { openCluster } from './wiring/cluster.ts';
import { untilStopped } from './program/context.ts';
import { judgedPods } from './report/judged-pods.ts';
import { findNewerTags } from './report/newer-tags.ts';
import { reportPage } from './report/page/page.ts';
import { moneyOf } from './report/prices/savings.ts';
import { readPrices } from './report/prices/prices.ts';
import { placeOf, publishReport } from './report/publish.ts';
import { asCsv, asTable, documentOf, reportOf } from './report/contents.ts';
import { exitCodes, Failure, UsageError } from './program/exit.ts';
import { architecture, choice, list, text, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { print } from './program/table.ts';
import { lookupFlags } from './lookups/pod-facts.ts';
import { cacheFlags } from './wiring/image-facts.ts';

const flags = {
  ...lookupFlags,
  architecture: architecture('Target architecture.', 'arm64', { short: 'a' }),
  by: choice(['workload', 'image'], 'Rows of a table or CSV.'),
  namespace: list('NAME', 'Only pods of this namespace. Can be repeated. Default: all namespaces.', {
    short: 'n',
  }),
  output: choice(['table', 'csv', 'json'], 'Output format.', { short: 'o' }),
  html: text('FILE', 'Writes the report as one page for a browser. `-`: standard output.'),
  publish: toggle(
    'Writes the report and the page into a ConfigMap of archwright’s namespace, and OpenReports objects if the cluster has their definitions.',
  ),
  prices: text('FILE', 'Prices of node types, for the savings.'),
  newerTags: toggle(
    'Looks for newer tags that have the architecture, for at most 50 images, from this machine.',
  ),
  ...cacheFlags,
};

type Call = Invocation<typeof flags>;

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

async function run(invocation: Call): Promise<number> {
  await checkOutput(invocation);
  const prices = await readPrices(invocation.flags.prices);
  await using opened = new AsyncDisposableStack();
  const cluster = await openCluster(invocation, opened);
  const { io, say } = invocation;
  const { architecture, by, output, publish, html, newerTags: isSearching } = invocation.flags;
  const namespaces = [...new Set(invocation.flags.namespace)];
  const place = publish ? placeOf(cluster.context) : undefined;
  const wanted = { architecture, namespaces, prices };
  const judged = await judgedPods(invocation, cluster, wanted, opened).catch(publish ? undefined : withHint);
  const { pods, lookups, isComplete } = judged;
  if (pods.length === 0 && namespaces.length > 0)
    say(`there are no pods in ${namespaces.join(', ')}`, 'warning');
  const newerTags = isSearching ? await findNewerTags(invocation, cluster, architecture, judged) : undefined;
  const money = judged.nodes && moneyOf(judged.nodes, prices, architecture);
  const report = reportOf({ pods, architecture, namespaces, lookups, made: new Date(), money, newerTags });
  if (place) {
    if (!isComplete)
      throw new Failure('not published, because it is incomplete; the last one stays', exitCodes.unanswered);
    return await publishReport(invocation, place, cluster.kubernetes.client, report);
  }
  if (html === '-') io.out(reportPage(report));
  else if (html !== undefined) {
    await writeFile(html, reportPage(report)).catch(unwritable(html));
    say(`${html} written`);
  } else print(invocation, documentOf(report), output === 'csv' ? asCsv(report, by) : asTable(report, by));
  if (html === undefined && output === 'csv') say(`images looked up ${lookups}`);
  if (!isComplete) return exitCodes.unanswered;
  return report.images.some(({ verdict }) => verdict === 'unknown') ? exitCodes.failure : exitCodes.success;
}

/** A folder that cannot be written is an error before the images are looked up. @throws UsageError */
async function checkOutput({ flags: { html, publish }, given }: Call): Promise<void> {
  const [first = '', other] = ['html', 'publish', 'output', 'by'].filter((name) => given.has(name));
  if ((html !== undefined || publish) && other !== undefined)
    throw new UsageError(`--${first} and --${other} exclude each other`);
  if (html !== undefined && html !== '-')
    await access(dirname(html), constants.W_OK).catch(unwritable(dirname(html)));
}

function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    throw new UsageError(`--html: ${path}: ${writeProblem(error)}`);
  };
}

function withHint(error: unknown): never {
  if (!isCode(error, 'forbidden')) throw error;
  const hint = 'use --namespace to select namespaces that you may read';
  throw new Failure(`${error.message}; ${hint}`, exitCodes.unanswered);
}
