/** A second release would act on the same pods. Helm refuses it, and names the existing release. */
import type { Test } from 'tap';
import type { Cluster } from '../cluster/harness.ts';
import { differencesFrom, steadyListing } from '../cluster/control-plane/listing.ts';
import { createHelm, kubectlOf } from '../helm/release.ts';
import { helms } from '../programs/helm.ts';
import { chart, render } from './helm.ts';

const elsewhere = 'default';
const definition = /CustomResourceDefinition "[a-z]+\.arch\.example"/;
const marker = /MutatingWebhookConfiguration "archwright-once-per-cluster"/;
const owner = /"meta\.helm\.sh\/release-name" must equal "second": current value is "archwright"/;
const place = /"meta\.helm\.sh\/release-namespace" must equal "default": current value is "archwright"/;
const foreign = /missing key "meta\.helm\.sh\/release-name"/;

const seconds: readonly (readonly [
  release: string,
  namespace: string,
  values: readonly string[],
  patterns: readonly RegExp[],
])[] = [
  ['second', elsewhere, [], [definition, owner, place]],
  ['archwright', elsewhere, [], [definition, place]],
  ['second', 'archwright', [], [definition, owner]],
  [
    'second',
    elsewhere,
    ['crds.install=false', 'fullnameOverride=other', 'rbac.create=false', 'protection.enabled=false'],
    [marker, owner, place],
  ],
];

/** @param cluster with the namespace `archwright`, in which agents may run */
export async function checkSecondRelease(t: Test, cluster: Cluster): Promise<void> {
  const before = await steadyListing(cluster);
  for (const name of helms) {
    const helm = createHelm(name, cluster);
    const run = (words: string): Promise<string> => helm.run(words, '--no-hooks');
    await run(`install archwright ${chart}`);
    const first = await steadyListing(cluster);
    for (const [release, namespace, values, patterns] of seconds) {
      const sets = values.map((value) => `--set ${value}`);
      const { code, text } = await helm.tryRun(
        `install ${release} ${chart} --namespace ${namespace} --no-hooks`,
        ...sets,
      );
      const what = `${name}: ${release} in ${namespace} ${values.join(',')}`;
      t.equal(code, 1, what);
      for (const pattern of patterns) t.match(text, pattern, what);
    }
    t.same(await differencesFrom(cluster, first), [], `${name}: no object was created`);
    await run('uninstall archwright');
    // A release in another namespace takes over the custom resources that were kept.
    await run(`install second ${chart} --namespace ${elsewhere} --take-ownership --set crds.keep=false`);
    await run(`uninstall second --namespace ${elsewhere}`);
    t.same(await differencesFrom(cluster, before), [], `${name}: nothing is left`);
  }

  const kubectl = kubectlOf(cluster);
  const plain = render('helm4', { crds: { keep: false } }, ['--no-hooks']);
  await kubectl(['apply', '-f', '-'], plain);
  for (const name of helms) {
    for (const [value, object] of [
      ['true', definition],
      ['false', marker],
    ] as const) {
      const words = `install second ${chart} --no-hooks --namespace ${elsewhere} --set crds.install=${value}`;
      const { code, text } = await createHelm(name, cluster).tryRun(words);
      t.equal(code, 1, `${name} with plain manifests, crds.install=${value}`);
      t.match(text, object);
      t.match(text, foreign);
    }
  }
  await kubectl(['delete', '-f', '-', '--ignore-not-found'], plain);
  t.same(await differencesFrom(cluster, before), []);
}
