/** `archwright report --publish`: the report as objects of the cluster, for `kubectl`. */
import { ownNames } from '../../../src/names/own-names.ts';
import { ignoring } from '../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { applied, isOwn } from '../../../src/controller/write/own-objects.ts';
import type { CliContext } from '../../program/context.ts';
import { exitCodes, Failure, UsageError } from '../../program/exit.ts';
import type { ReportCall } from '../flags.ts';
import type { Kubernetes } from '../../wiring/kubernetes.ts';
import type { Report } from '../contents.ts';
import { reportPage } from '../page/page.ts';
import { configMapOf } from './config-map.ts';
import { publishReports } from './open-reports.ts';

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
  { say, stop }: ReportCall,
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
