/**
 * A second release in the same cluster would act on the same pods, and the protection of each would refuse the controller of the other:
 * Helm refuses it before it makes anything, and says where the first one is.
 */
import { join } from 'node:path';
import type { Test } from 'tap';
import { kubernetesPrograms } from '../programs/kubernetes.ts';
import type { Cluster } from '../cluster/harness.ts';
import { createKubectl } from '../helm/kubectl.ts';
import { helms, type HelmName } from '../programs/helm.ts';
import { chart, render, runHelm } from './helm.ts';
import { settled, steady } from './snapshot.ts';

const elsewhere = 'default';
const definition = /CustomResourceDefinition "clusterpodplacementconfigs\.arch\.example"/;
const marker = /MutatingWebhookConfiguration "archwright-once-per-cluster"/;
const owner = /"meta\.helm\.sh\/release-name" must equal "second": current value is "archwright"/;
const place = /"meta\.helm\.sh\/release-namespace" must equal "default": current value is "archwright"/;
const foreign = /missing key "meta\.helm\.sh\/release-name"/;

/** What the second one is, and what Helm says to it. */
const seconds: readonly (readonly [
  release: string,
  namespace: string,
  values: readonly string[],
  said: readonly RegExp[],
])[] = [
  ['second', elsewhere, [], [definition, owner, place]],
  ['archwright', elsewhere, [], [definition, place]],
  ['second', 'archwright', [], [definition, owner]],
  ['second', elsewhere, ['crds.install=false'], [marker, owner, place]],
  ['archwright', elsewhere, ['crds.install=false'], [marker, place]],
  ['second', 'archwright', ['crds.install=false'], [marker, owner]],
  [
    'second',
    elsewhere,
    ['crds.install=false', 'fullnameOverride=other', 'rbac.create=false', 'protection.enabled=false'],
    [marker, owner, place],
  ],
];

/** @param cluster with the namespace `archwright`, in which agents may run */
export async function refusesSecond(t: Test, cluster: Cluster): Promise<void> {
  const { client } = cluster;
  const run = (
    helm: HelmName,
    ...args: readonly string[]
  ): { readonly code: number | null; readonly text: string } => {
    const { code, out, err } = runHelm(helm, [...args, '--no-hooks'], { kubeconfig: cluster.kubeconfig });
    return { code, text: out + err };
  };
  const works = (helm: HelmName, ...args: readonly string[]): void => {
    const { code, text } = run(helm, ...args);
    t.equal(code, 0, `${helm} ${args.join(' ')}: ${text}`);
  };
  const before = await steady(client);
  for (const helm of helms) {
    works(helm, 'install', 'archwright', chart, '--namespace', 'archwright');
    const first = await steady(client);
    for (const [release, namespace, values, said] of seconds) {
      const sets = values.flatMap((value) => ['--set', value]);
      const { code, text } = run(helm, 'install', release, chart, '--namespace', namespace, ...sets);
      const what = `${helm}: ${release} in ${namespace} ${values.join(',')}`;
      t.equal(code, 1, what);
      for (const pattern of said) t.match(text, pattern, what);
    }
    t.same(await settled(client, first), first, `${helm}: nothing was made`);
    works(helm, 'upgrade', 'archwright', chart, '--namespace', 'archwright', '--set', 'crds.keep=true');
    works(helm, 'uninstall', 'archwright', '--namespace', 'archwright');
    // To another place with the custom resources that were kept.
    works(helm, 'install', 'second', chart, '--namespace', elsewhere, '--take-ownership');
    works(helm, 'uninstall', 'second', '--namespace', elsewhere);
    t.same(await settled(client, before), before, `${helm}: nothing is left`);
  }

  const kubectl = createKubectl(
    kubernetesPrograms(['kubectl']).kubectl,
    cluster.kubeconfig,
    join(cluster.directory, 'kubectl'),
  );
  const plain = render('helm4', {}, ['--no-hooks']);
  await kubectl(['apply', '-f', '-'], plain);
  for (const helm of helms) {
    for (const [value, object] of [
      ['true', definition],
      ['false', marker],
    ] as const) {
      const args = ['second', chart, '--namespace', elsewhere, '--set', `crds.install=${value}`];
      const { code, text } = run(helm, 'install', ...args);
      t.equal(code, 1, `${helm} beside plain manifests, crds.install=${value}`);
      t.match(text, object);
      t.match(text, foreign);
    }
  }
  await kubectl(['delete', '-f', '-', '--ignore-not-found'], plain);
  t.same(await settled(client, before), before);
}
