/**
 * `archwright report --publish`: the report as objects of the cluster: a ConfigMap, and for dashboards an
 * OpenReports object (`openreports.io/v1alpha1`) in each namespace, with a result for each row of the report.
 * @see https://github.com/openreports/reports-api, apis/openreports.io/v1alpha1/report_types.go
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { concurrently } from '../../src/async/concurrently.ts';
import { applied, isOwn, namedLabels, openReports } from '../../src/controller/write/own-objects.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { ignoring, isCode, KubeError } from '../../src/kube/api/errors.ts';
import type { KubeObject } from '../../src/kube/api/objects.ts';
import { objectsOf } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { ownNames } from '../../src/names/keys.ts';
import { printable } from '../../src/names/printable.ts';
import { byName } from '../../src/names/values.ts';
import type { CliContext } from '../program/context.ts';
import { exitCodes, Failure, UsageError } from '../program/exit.ts';
import type { Invocation } from '../program/subcommand.ts';
import { counted, jsonText } from '../program/table.ts';
import { programVersion } from '../program/version.ts';
import { bytes } from './page/data.ts';
import { reportPage } from './page/page.ts';
import { countsText, workloadRows, type WorkloadRow } from './rows.ts';
import { verdicts, type JudgedPod } from './verdict.ts';
import { documentOf, type Report } from './contents.ts';

type Place = ReturnType<typeof placeOf>;

interface Publisher extends Pick<Invocation, 'say' | 'stop'> {
  readonly client: KubeClient;
  /** Every object has this name, because a Role can allow one name. */
  readonly name: string;
}

/** Where the ConfigMap goes. @throws UsageError if archwright's namespace is not known */
export function placeOf({ configuration }: CliContext) {
  const { namespace } = configuration;
  if (namespace !== undefined) return { namespace, name: ownNames(configuration).report };
  throw new UsageError('--publish: archwright was not found in the cluster; set --release');
}

/** @returns the exit code @throws KubeError if the ConfigMap cannot be written */
export async function publishReport(
  { say, stop }: Pick<Invocation, 'say' | 'stop'>,
  place: Place,
  client: KubeClient,
  report: Report,
): Promise<number> {
  const { namespace, name } = place;
  const path = paths.configMaps(namespace, name);
  const present = await ignoring('not-found', client.get<KubeObject>(path, { signal: stop }));
  if (present && !isOwn(present)) {
    throw new Failure(`ConfigMap ${namespace}/${name} was not made by archwright; delete it`);
  }
  const { object, leftOut } = await configMapOf(report, reportPage(report), place);
  await client.patch(path, applied(object), { signal: stop });
  say(`ConfigMap ${namespace}/${name} written`);
  for (const each of leftOut) say(`left out: ${each}`);
  const isWhole = await publishReports(report, { client, name, say, stop });
  return isWhole ? exitCodes.success : exitCodes.failure;
}

/** A ConfigMap may have 1 MiB (kubernetes `MaxSecretSize`). 5,000 workloads have 143 KiB, compressed. */
const maxBytes = 1000 * 1024;
const compress = promisify(gzip);

/** @returns with the names and sizes of files that do not fit */
export async function configMapOf(report: Report, page: string, place: Place) {
  const files = { 'report.html.gz': page, 'report.json.gz': jsonText(documentOf(report)) };
  const binaryData: Record<string, string> = {};
  const leftOut: string[] = [];
  let left = maxBytes;
  for (const [file, text] of Object.entries(files)) {
    const compressed = await compress(text);
    if (compressed.length > left) {
      leftOut.push(`${file}, ${bytes(compressed.length)}: a ConfigMap may have 1Mi`);
      continue;
    }
    left -= compressed.length;
    binaryData[file] = compressed.toString('base64');
  }
  const { architecture, namespaces, lookups, made, totals } = report;
  const summary = {
    made: made.toISOString(),
    version: programVersion.version,
    architecture,
    ...(namespaces.length > 0 && { namespaces }),
    lookups,
    totals,
    leftOut,
  };
  const data = { 'summary.json': jsonText(summary) };
  const metadata = { ...place, labels: namedLabels };
  return { object: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data, binaryData }, leftOut };
}

/** A cluster with more namespaces has few workloads in each. */
const maxReports = 1000;
/** A Report with the longest messages has less than 1 MiB; etcd takes 1.5 MiB. */
const maxResults = 500;
const maxMessageBytes = 512;
const concurrentWrites = 4;

/** Also deletes those of namespaces without pods. @returns false if some were refused @throws KubeError */
export async function publishReports(
  { pods, architecture }: Pick<Report, 'pods' | 'architecture'>,
  publisher: Publisher,
): Promise<boolean> {
  const { client, name, say, stop } = publisher;
  const present = await presentReports(publisher);
  if (present === undefined) return true;
  const all = Map.groupBy(pods, ({ pod }) => pod.namespace)
    .entries()
    .filter(([namespace]) => {
      const isFree = present.get(namespace) !== 'foreign';
      if (!isFree) say(`Report ${namespace}/${name} stays: it was not made by archwright`);
      return isFree;
    })
    .toArray();
  const wanted = new Map(all.toSorted(([a], [b]) => byName(a, b)).slice(0, maxReports));
  if (all.length > wanted.size) say(`left out: Reports of ${counted(all.length - wanted.size, 'namespace')}`);
  const stale = [...present].filter(([namespace, maker]) => maker === 'own' && !wanted.has(namespace));
  const done = { written: 0, deleted: 0 };
  const changes = [
    ...[...wanted].map(([namespace, some]) => async () => {
      await writeReport(publisher, namespace, resultsOf(some, architecture));
      done.written += 1;
    }),
    ...stale.map(([namespace]) => async () => {
      await ignoring('not-found', client.delete(openReports(namespace, name), { signal: stop }));
      done.deleted += 1;
    }),
  ];
  // One that is refused does not stop the others.
  await concurrently(changes, concurrentWrites, async (change) => {
    try {
      await change();
    } catch (error) {
      if (!(error instanceof KubeError) || error.temporary || stop.aborted) throw error;
      say(error.message);
    }
  });
  say(`Reports: ${done.written} written, ${done.deleted} deleted`);
  return done.written + done.deleted === changes.length;
}

/** @returns by namespace; `undefined` if they cannot be written */
async function presentReports({ client, name, say, stop: signal }: Publisher) {
  const found = new Map<string, 'own' | 'foreign'>();
  try {
    const query = { fieldSelector: `metadata.name=${name}` };
    const options = { signal, query, metadataOnly: true };
    for await (const each of objectsOf<KubeObject>(client, openReports(), options))
      found.set(each.metadata?.namespace ?? '', isOwn(each) ? 'own' : 'foreign');
    return found;
  } catch (error) {
    if (isCode(error, 'not-found')) say('no Reports: the cluster has no OpenReports definitions');
    else if (isCode(error, 'forbidden')) say(`no Reports: ${error.message}`);
    else throw error;
    return undefined;
  }
}

/** A namespace that is deleted meanwhile needs no Report. */
async function writeReport(
  { client, name, stop: signal }: Publisher,
  namespace: string,
  content: object,
): Promise<void> {
  const metadata = { name, namespace, labels: namedLabels };
  const body = { apiVersion: 'openreports.io/v1alpha1', kind: 'Report', metadata, ...content };
  try {
    await client.patch(openReports(namespace, name), applied(body), { signal });
  } catch (error) {
    const isGone = isCode(error, 'forbidden') && error.message.includes('because it is being terminated');
    if (!isGone && !isCode(error, 'not-found')) throw error;
  }
}

const results = { yes: 'pass', pinned: 'warn', no: 'fail', unknown: 'error' } as const;

/** Everything of a Report but its metadata. Without times, so that it only changes with its content. */
export function resultsOf(pods: readonly JudgedPod[], architecture: string): object {
  const rows = workloadRows(pods);
  const worstFirst = rows.toSorted((a, b) => verdicts.indexOf(b.verdict) - verdicts.indexOf(a.verdict));
  const count = (result: string): number => rows.filter(({ verdict }) => results[verdict] === result).length;
  return {
    source: 'archwright',
    scope: { apiVersion: 'v1', kind: 'Namespace', name: pods[0]?.pod.namespace },
    configuration: { limits: { maxResults } },
    summary: Object.fromEntries(['pass', 'warn', 'fail', 'error', 'skip'].map((each) => [each, count(each)])),
    results: worstFirst.slice(0, maxResults).map((row) => resultOf(row, architecture)),
  };
}

function resultOf(row: WorkloadRow, architecture: string): object {
  const { namespace, apiVersion, kind, name, verdict, why, pods, on, cpu, memory } = row;
  const nodes = countsText(on);
  return {
    policy: `runs-on-${architecture}`,
    category: 'Architecture',
    result: results[verdict],
    scored: verdict !== 'pinned',
    resources: [{ apiVersion, kind, namespace, name }],
    message: printable(why === '' ? `its images have ${architecture}` : why, maxMessageBytes),
    properties: {
      pods: String(pods),
      ...(nodes !== undefined && { on: nodes }),
      cpu: String(cpu),
      memory: bytes(memory),
    },
  };
}
