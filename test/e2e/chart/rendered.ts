/** Rendered objects of the chart, and its webhook configuration for a webhook outside the cluster. */
import { parse, parseAllDocuments } from 'yaml';
import type { KubeObject, NodeSelectorTerm, Pod } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import type { Cluster } from '../cluster/harness.ts';
import { render } from './helm.ts';

export interface PodTemplate {
  readonly metadata: KubeObject['metadata'];
  readonly spec: PodSpec;
}

export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly priorityClassName?: string;
  readonly affinity: {
    readonly nodeAffinity: {
      readonly requiredDuringSchedulingIgnoredDuringExecution: {
        readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
      };
    };
  };
  readonly tolerations: readonly { readonly key?: string }[];
  readonly imagePullSecrets?: readonly object[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly volumes?: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly hostPath?: { readonly path: string };
    readonly projected?: { readonly sources: readonly { readonly secret?: object }[] };
  }[];
  readonly securityContext: object;
  readonly initContainers?: readonly ChartContainer[];
  readonly containers: readonly ChartContainer[];
}

interface ChartContainer {
  readonly image: string;
  /** Containers of `extraContainers` have none. */
  readonly args?: readonly string[];
  readonly securityContext: object;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly readOnly?: boolean }[];
  readonly readinessProbe?: { readonly httpGet: { readonly host?: string; readonly scheme?: string } };
}

export interface Rendered extends KubeObject {
  readonly spec?: {
    readonly template?: PodTemplate;
    readonly jobTemplate?: { readonly spec: { readonly template: PodTemplate } };
    readonly serviceAccountName?: string;
    readonly priorityClassName?: string;
  };
  readonly data?: Readonly<Record<string, string>>;
}

export function objectsOf(text: string): readonly Rendered[] {
  return parseAllDocuments(text, { version: '1.1' }).flatMap((document) => {
    const object = document.toJS() as (Rendered & { readonly items?: readonly Rendered[] }) | null;
    return object === null ? [] : (object.items ?? [object]);
  });
}

/** Everything that runs: pods of workloads, hooks, the report and the test, by the name of their object. */
export function podsIn(objects: readonly Rendered[]): ReadonlyMap<string, PodTemplate> {
  return new Map(
    objects.flatMap(({ kind, metadata, spec }) => {
      const pod = { metadata, spec: spec as unknown as PodSpec };
      const template = kind === 'Pod' ? pod : (spec?.jobTemplate?.spec.template ?? spec?.template);
      return template?.spec && 'containers' in template.spec
        ? [[metadata?.name ?? '', template] as const]
        : [];
    }),
  );
}

/**
 * Applies in a dry run. Unknown and duplicate fields are refused.
 * @param path of its collection, if it is known
 * @throws KubeError
 */
export async function dryRun(cluster: Cluster, object: Rendered, path?: string): Promise<void> {
  const collection = path ?? (await cluster.pathOf(object));
  const query = { dryRun: 'All', fieldValidation: 'Strict' };
  const patch = { type: 'apply', body: object, fieldManager: 'e2e' } as const;
  await cluster.patch(`${collection}/${object.metadata?.name ?? ''}`, patch, query);
}

export interface WebhookOfChart {
  readonly name: string;
  readonly clientConfig: { readonly service: { readonly path: string } };
  readonly namespaceSelector: { readonly matchExpressions: readonly object[] };
  readonly rules: readonly object[];
}

/** The webhook configuration that a controller applies, from the ConfigMap with its webhooks. */
export function withWebhooks(
  map: Rendered | undefined,
): Rendered & { readonly webhooks: readonly WebhookOfChart[] } {
  const text = map?.data?.['webhooks.yaml'] ?? '';
  const { webhooks } = parse(text, { version: '1.1' }) as { readonly webhooks: readonly WebhookOfChart[] };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'archwright' },
    webhooks,
  };
}

/** Pods are admitted only if their priority class exists. Its value cannot be changed. */
export const priorityClasses = '/apis/scheduling.k8s.io/v1/priorityclasses';

const configurationPath = paths.mutatingWebhookConfigurations('archwright');

export async function applyWebhooks(cluster: Cluster): Promise<void> {
  const map = await cluster.get<Rendered>(paths.configMaps('archwright', 'archwright'));
  const patch = { type: 'apply', fieldManager: 'archwright-controller' } as const;
  await cluster.patch(configurationPath, { ...patch, body: withWebhooks(map) });
}

export async function webhooksOf(cluster: Cluster): Promise<readonly unknown[]> {
  const { webhooks = [] } = await cluster.get<{ readonly webhooks?: readonly unknown[] }>(configurationPath);
  return webhooks;
}

/**
 * Makes the API server call the webhook, and waits until it does. With `failurePolicy: Fail` errors show.
 * @param image one that the webhook can place
 */
export async function callWebhook(
  cluster: Cluster,
  { url, ca }: { readonly url: string; readonly ca: string },
  image: string,
): Promise<void> {
  const map = objectsOf(render('helm4', { failurePolicy: 'Fail', timeoutSeconds: 10 })).find(
    ({ data }) => data?.['webhooks.yaml'] !== undefined,
  );
  const { webhooks, ...configuration } = withWebhooks(map);
  const caBundle = Buffer.from(ca).toString('base64');
  await cluster.create({
    ...configuration,
    webhooks: webhooks.map(({ clientConfig, ...webhook }) => ({
      ...webhook,
      clientConfig: { url: `${url}${clientConfig.service.path}`, caBundle },
    })),
  });
  const until = performance.now() + 120_000;
  // Not by dry runs: they are answered from memory, which does not have the image yet.
  const pods = paths.pods('default');
  for (;;) {
    const spec = { containers: [{ name: 'c', image }] };
    const { metadata, spec: made } = await cluster.post<Pod>(pods, {
      metadata: { generateName: 'try-' },
      spec,
    });
    await cluster.delete(`${pods}/${metadata?.name ?? ''}`);
    if (made.affinity !== undefined) return;
    if (performance.now() > until) throw new Error('the API server does not call the webhook');
  }
}
