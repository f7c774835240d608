/** `archwright report --publish`: the report as objects of the cluster, for `kubectl`. */
import { ownNames } from '../../../src/names/own-names.ts';
import { ignoring } from '../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { applied, isOwn, namedLabels } from '../../../src/controller/write/own-objects.ts';
import type { CliContext } from '../../program/context.ts';
import type { Invocation } from '../../program/subcommand.ts';
import { exitCodes, Failure, UsageError } from '../../program/exit.ts';
import type { Kubernetes } from '../../wiring/kubernetes.ts';
import type { Report } from '../contents.ts';
import { reportPage } from '../page/page.ts';
import { publishReports } from './open-reports.ts';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { programVersion } from '../../program/version.ts';
import { bytes } from '../amounts.ts';
import { asJson } from '../write.ts';
import { jsonText } from '../../program/table.ts';

interface Place {
  readonly namespace: string;
  readonly name: string;
}

/** Where the ConfigMap goes. @throws UsageError if archwright's namespace is not known */
export function placeOf({ configuration }: CliContext): Place {
  const { namespace } = configuration;
  const { report: name } = ownNames(configuration);
  if (namespace !== undefined) return { namespace, name };
  throw new UsageError('--publish: archwright was not found in the cluster; set --release');
}

/** @returns the exit code @throws KubeError if the ConfigMap cannot be written */
export async function publishReport(
  { say, stop }: Pick<Invocation, 'say' | 'stop'>,
  place: Place,
  { client }: Kubernetes,
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
  const files = { 'report.html.gz': page, 'report.json.gz': asJson(report) };
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
