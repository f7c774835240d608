/** The parts of the chart with cert-manager that make sense in a cluster without its pods. */
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { render } from '../../chart/helm.ts';

export interface RenderedChart {
  /** YAML of objects for cert-manager, of the webhook's Service and configuration, and RBAC. */
  readonly objects: string;
  /** `webhooks.yaml`. */
  readonly webhooks: string;
}

/** @param certManager the value of that name */
export function renderChart(certManager: object): RenderedChart {
  const values = {
    certificates: 'certManager',
    certManager,
    failurePolicy: 'Fail',
    // A busy machine needs more than the default.
    timeoutSeconds: 10,
  };
  const all = parseAllDocuments(render('helm3', values))
    .map((document) => document.toJS() as KubeObject | null)
    .filter((each) => each !== null);
  const wanted = all.filter(isWanted).map((each) => stringify(each));
  return { objects: wanted.join('---\n'), webhooks: webhooksIn(all) };
}

function isWanted({ apiVersion, kind, metadata }: KubeObject): boolean {
  if (apiVersion === 'cert-manager.io/v1') return true;
  if (apiVersion === 'rbac.authorization.k8s.io/v1') return true;
  return kind === 'MutatingWebhookConfiguration' || (kind === 'Service' && isOfWebhook(metadata?.name));
}

const isOfWebhook = (name: string | undefined): boolean => name === 'archwright-webhook';

function webhooksIn(objects: readonly KubeObject[]): string {
  for (const object of objects) {
    const { data } = object as { readonly data?: Readonly<Record<string, string>> };
    const text = data?.['webhooks.yaml'];
    if (text !== undefined) return text;
  }
  throw new Error('the chart has no webhooks.yaml');
}
