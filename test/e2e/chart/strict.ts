/** Strict API server validation of the chart, the plain manifests and the examples; Pod Security for pods. */
import { globSync, readFileSync } from 'node:fs';
import type { Test } from 'tap';
import { parse } from 'yaml';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { until } from '../../support/until.ts';
import { openDefinition } from '../cluster/control-plane/definitions.ts';
import type { Cluster } from '../cluster/harness.ts';
import { render } from './helm.ts';
import { dryRun, objectsOf, podsIn, priorityClasses, withWebhooks, type Rendered } from './rendered.ts';
import { valueSets } from './value-sets.ts';

interface Wanted {
  readonly from: string;
  readonly object: Rendered;
}

/** Each different object once. Rendering all of them takes about ten seconds. */
export function everyObject(): readonly Wanted[] {
  const wanted = new Map<string, Wanted>();
  const add = (from: string, text: string): void => {
    for (const object of objectsOf(text)) {
      const key = JSON.stringify(object);
      if (!wanted.has(key)) wanted.set(key, { from, object });
    }
  };
  for (const [about, values] of Object.entries(valueSets())) add(about, render('helm4', values));
  for (const file of [...globSync('examples/helm/*.yaml'), 'examples/kind/values.yaml'])
    add(file, render('helm4', parse(readFileSync(file, 'utf8')) as object));
  for (const file of ['archwright', 'clean', 'report'].map((name) => `deploy/${name}.yaml`))
    add(file, readFileSync(file, 'utf8'));
  const webhooks = [...wanted.values()].flatMap(({ from, object }) =>
    object.data?.['webhooks.yaml'] === undefined ? [] : [{ from, object: withWebhooks(object) }],
  );
  for (const { from, object } of webhooks)
    wanted.set(JSON.stringify(object), { from: `webhooks that the controller applies: ${from}`, object });
  return [...wanted.values()];
}

/** Any fields: `openshift.test.ts` compares them. */
export const constraintsDefinition = openDefinition(
  'security.openshift.io',
  'v1',
  'SecurityContextConstraints',
  'Cluster',
);

const foreign = [
  'Certificate',
  'Issuer',
  'PodMonitor',
  'PrometheusRule',
  'SecurityContextConstraints',
  'ServiceMonitor',
  'VerticalPodAutoscaler',
];

/** @param cluster with the definitions of foreign kinds and of the chart's own */
export async function checkStrictValidation(
  t: Test,
  cluster: Cluster,
  wanted: readonly Wanted[],
): Promise<void> {
  const kinds = new Set(wanted.map(({ object }) => object.kind));
  for (const kind of foreign) t.ok(kinds.has(kind), `the chart renders ${kind}`);

  for (const namespace of new Set(wanted.map(({ object }) => object.metadata?.namespace ?? 'default'))) {
    const there = await cluster.get(`/api/v1/namespaces/${namespace}`).catch(() => undefined);
    if (there === undefined) await cluster.createNamespace(namespace);
  }
  const isPod = ({ object }: Wanted): boolean => object.kind === 'Pod';
  const pods = wanted.filter(isPod);
  const undo = await createPrerequisites(cluster, pods);
  const paths = new Map<string, Promise<string>>();
  const check = async ({ from, object }: Wanted): Promise<void> => {
    const key = [object.apiVersion, object.kind, object.metadata?.namespace].join(' ');
    const path = paths.get(key) ?? cluster.pathOf(object);
    paths.set(key, path);
    await t.resolves(
      path.then((collection) => dryRun(cluster, object, collection)),
      `${object.kind} ${object.metadata?.name}: ${from}`,
    );
  };
  for (const pod of pods) await check(pod);
  await undo();
  for (const other of wanted) if (!isPod(other)) await check(other);
}

/** A pod is admitted only if its service account and its priority class exist. */
async function createPrerequisites(cluster: Cluster, pods: readonly Wanted[]): Promise<() => Promise<void>> {
  const made: string[] = [];
  const make = async (path: string, name: string, more: object): Promise<void> => {
    await cluster.post(path, { metadata: { name }, ...more });
    made.push(`${path}/${name}`);
  };
  for (const name of new Set(pods.map(({ object }) => object.spec?.priorityClassName ?? 'system-')))
    if (!name.startsWith('system-')) made.push(await createPriorityClass(cluster, name));
  const accounts = new Set(
    pods.map(
      ({ object: { metadata, spec } }) => `${metadata?.namespace} ${spec?.serviceAccountName ?? 'default'}`,
    ),
  );
  for (const [namespace, name = ''] of [...accounts].map((account) => account.split(' ')))
    if (name !== 'default') await make(`/api/v1/namespaces/${namespace}/serviceaccounts`, name, {});
  return async () => {
    for (const path of made) await cluster.delete(path);
  };
}

/** The API server admits pods of a new class a moment after it was created. @returns its path */
async function createPriorityClass(cluster: Cluster, name: string): Promise<string> {
  await cluster.post(priorityClasses, { metadata: { name }, value: 1 });
  const spec = { priorityClassName: name, containers: [{ name: 'app', image: 'app:1' }] };
  const isAdmitted = async (): Promise<boolean> => {
    try {
      await cluster.post(
        '/api/v1/namespaces/default/pods',
        { metadata: { name: 'first' }, spec },
        { dryRun: 'All' },
      );
      return true;
    } catch (error) {
      if (error instanceof KubeError && error.code === 'forbidden') return false;
      throw error;
    }
  };
  await until(isAdmitted, `pods of the priority class ${name}`);
  return `${priorityClasses}/${name}`;
}

export async function checkPodSecurity(t: Test, cluster: Cluster): Promise<void> {
  await cluster.createNamespace('restricted', { 'pod-security.kubernetes.io/enforce': 'restricted' });
  const pods = podsIn(objectsOf(render('helm4', { report: { enabled: true } })));
  for (const { spec } of pods.values())
    await cluster.make('ServiceAccount', `restricted/${spec.serviceAccountName}`);
  const priorityClass = await createPriorityClass(cluster, 'archwright');
  for (const [name, template] of pods) {
    const metadata = { ...template.metadata, name: `x-${name}`, namespace: 'restricted' };
    const applied = dryRun(cluster, { ...template, apiVersion: 'v1', kind: 'Pod', metadata });
    if (name === 'archwright-agent') await t.rejects(applied, /violates PodSecurity/);
    else await t.resolves(applied, name);
  }
  t.equal(pods.size, 9, 'webhook, controller, agent, report, four Jobs and the pod of helm test');
  await cluster.delete(priorityClass);
}
