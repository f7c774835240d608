/** Installations that cannot work end within a minute and say why. What `helm uninstall` says leaves nothing behind. */
import assert from 'node:assert/strict';
import type { ConfigMap } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { differencesFrom, steadyListing } from '../cluster/control-plane/listing.ts';
import { expectSameAsBefore } from './leaving.ts';
import { namespace, type Helm, type Outcome } from './release.ts';
import { step } from './report.ts';
import { onRealNode, releaseValues, type World } from './world.ts';

/** By default. A loaded machine needs more. */
const withinMs = 60_000;

export async function wrongImage(world: World, helm: Helm, imagePullSeconds = 5): Promise<void> {
  const of = (name: string): string => `${helm.name}, an image that does not exist: ${name}`;
  const before = await steadyListing(world.cluster);
  const values = helm.values('wrong-image', {
    ...releaseValues(world),
    image: { ...world.own, tag: 'wrong' },
    startupCheck: { imagePullSeconds },
  });
  const cause = /job[/ ]\S*archwright-image-pull (?:failed|not ready\. status: Failed)/i;
  await step(of('helm install'), () => expectFailure(helm, cause, 'install', 'archwright', chart, values));
  const advice = /job[/ ]\S*archwright-use-no-hooks (?:failed|not ready\. status: Failed)/i;
  await step(of('helm uninstall says what to do'), () =>
    expectFailure(helm, advice, 'uninstall', 'archwright'),
  );
  await step(of('helm uninstall --no-hooks'), () => helm.run('uninstall', 'archwright', '--no-hooks'));
  // Not even the definitions of custom resources, which an uninstall keeps, were created.
  await step(of('nothing was changed'), async () =>
    assert.deepEqual(await differencesFrom(world.cluster, before), []),
  );
}

/** In a namespace with Pod Security `restricted`, agents cannot start. */
export async function refusedAgents(world: World, helm: Helm): Promise<void> {
  const of = (name: string): string => `${helm.name}, agents are refused: ${name}`;
  const before = await steadyListing(world.cluster);
  const values = helm.values('refused-agents', onRealNode(world.own));
  await step(of('helm install'), () =>
    expectFailure(
      helm,
      /DaemonSet archwright-agent: FailedCreate: .*violates PodSecurity/,
      'install',
      'archwright',
      chart,
      values,
    ),
  );
  await step(of('helm uninstall, with a setting of another version'), async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps/archwright`;
    const { data } = await world.cluster.get<ConfigMap>(path);
    const text = `later = true\n${data?.['archwright.toml']}`;
    await world.cluster.merge(path, { data: { 'archwright.toml': text } });
    await helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m');
  });
  await expectSameAsBefore(world, helm, before);
}

async function expectFailure(helm: Helm, cause: RegExp, ...words: readonly string[]): Promise<Outcome> {
  const started = performance.now();
  const outcome = await helm.tryRun(...words);
  const ms = performance.now() - started;
  assert.notEqual(outcome.code, 0, outcome.text);
  assert.match(outcome.text, cause);
  assert(ms < withinMs, `${ms} ms: ${outcome.text}`);
  return outcome;
}
