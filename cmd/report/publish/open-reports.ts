/**
 * The report as OpenReports objects (`openreports.io/v1alpha1`), for dashboards that show them: a Report in
 * each namespace, with a result for each row of the report.
 * @see https://github.com/openreports/reports-api, apis/openreports.io/v1alpha1/report_types.go
 */
import { concurrently } from '../../../src/async/concurrently.ts';
import { applied, isOwn, namedLabels, openReports } from '../../../src/controller/write/own-objects.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { ignoring, isCode, KubeError } from '../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { objectsOf } from '../../../src/kube/api/pages.ts';
import { byName } from '../../../src/names/values.ts';
import { printable } from '../../../src/names/printable.ts';
import { counted } from '../../program/table.ts';
import { bytes } from '../amounts.ts';
import { countsText, workloadKey, workloadRows, type JudgedPod, type WorkloadRow } from '../rows.ts';
import type { Report } from '../contents.ts';
import { verdicts } from '../verdict.ts';

/** A cluster with more namespaces has few workloads in each. */
const maxReports = 1000;
/** A Report with the longest messages has less than 1 MiB; etcd takes 1.5 MiB. */
const maxResults = 500;
const maxMessageBytes = 512;
const concurrentWrites = 4;

const results = { yes: 'pass', pinned: 'warn', no: 'fail', unknown: 'error' } as const;

interface Options {
  readonly client: KubeClient;
  /** Every Report has this name, because a Role can allow one name. */
  readonly name: string;
  readonly say: (message: string) => void;
  readonly stop: AbortSignal;
}

/** Also deletes those of namespaces without pods. @returns false if some were refused @throws KubeError */
export async function publishReports(
  { pods, architecture }: Pick<Report, 'pods' | 'architecture'>,
  options: Options,
): Promise<boolean> {
  const { client, name, say, stop: signal } = options;
  const present = await presentReports(options);
  if (present === undefined) return true;
  const byNamespace = [...Map.groupBy(pods, ({ pod }) => pod.namespace)].toSorted(([a], [b]) => byName(a, b));
  const [own, foreign] = [[], []] as [typeof byNamespace, typeof byNamespace];
  for (const each of byNamespace) (present.get(each[0]) === 'foreign' ? foreign : own).push(each);
  for (const [namespace] of foreign) say(`Report ${namespace}/${name} stays: it was not made by archwright`);
  const wanted = new Map(own.slice(0, maxReports));
  if (own.length > wanted.size) say(`left out: Reports of ${counted(own.length - wanted.size, 'namespace')}`);
  const stale = [...present].filter(([namespace, maker]) => maker === 'own' && !wanted.has(namespace));
  const written = await countDone(options, [...wanted], ([namespace, some]) =>
    write(options, namespace, resultsOf(some, architecture)),
  );
  const deleted = await countDone(options, stale, async ([namespace]) => {
    await ignoring('not-found', client.delete(openReports(namespace, name), { signal }));
  });
  say(`Reports: ${written} written, ${deleted} deleted`);
  return written === wanted.size && deleted === stale.length;
}

/** @returns by namespace; `undefined` if they cannot be written */
async function presentReports({ client, name, say, stop: signal }: Options) {
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

/** One that is refused does not stop the others. */
async function countDone<T>(
  { say, stop }: Options,
  all: readonly T[],
  change: (each: T) => Promise<void>,
): Promise<number> {
  let done = 0;
  await concurrently(all, concurrentWrites, async (each) => {
    try {
      await change(each);
      done += 1;
    } catch (error) {
      if (!(error instanceof KubeError) || error.temporary || stop.aborted) throw error;
      say(error.message);
    }
  });
  return done;
}

/** A namespace that is deleted meanwhile needs no Report. */
async function write(
  { client, name, stop: signal }: Options,
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

/** Everything of a Report but its metadata. Without times, so that it only changes with its content. */
export function resultsOf(pods: readonly JudgedPod[], architecture: string): object {
  const rows = workloadRows(pods);
  const worstFirst = rows.toSorted((a, b) => verdicts.indexOf(b.verdict) - verdicts.indexOf(a.verdict));
  const versions = new Map(
    pods.map(({ pod, workload }) => [workloadKey(workload, pod), workload.apiVersion]),
  );
  const counted = rows.map(({ verdict }) => results[verdict]);
  const count = (result: string): number => counted.filter((each) => each === result).length;
  return {
    source: 'archwright',
    scope: { apiVersion: 'v1', kind: 'Namespace', name: pods[0]?.pod.namespace },
    configuration: { limits: { maxResults } },
    summary: {
      pass: count('pass'),
      warn: count('warn'),
      fail: count('fail'),
      error: count('error'),
      skip: 0,
    },
    results: worstFirst.slice(0, maxResults).map((row) => resultOf(row, architecture, versions)),
  };
}

function resultOf(row: WorkloadRow, architecture: string, versions: ReadonlyMap<string, string>): object {
  const { namespace, kind, name, verdict, why, pods, on, cpu, memory } = row;
  const apiVersion = versions.get(workloadKey(row, row));
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
