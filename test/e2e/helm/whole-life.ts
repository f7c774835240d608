/** A release from its installation to its removal. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { nodeName } from './node.ts';
import { documentedCommands } from './documented.ts';
import { steadyListing } from '../cluster/control-plane/listing.ts';
import { checkRemoval, expectNothingForbidden } from './leaving.ts';
import type { Followed } from './logs.ts';
import { crash, deletePart, partNames, untilWebhooksInForce, untilReady } from './parts.ts';
import { isGated, podPath } from '../cluster/control-plane/pods.ts';
import {
  deletePods,
  whileCreatingPods,
  isPlaced,
  podOf,
  nodeArchitectureOf,
  type WantedPod,
} from './pods.ts';
import type { Helm } from './release.ts';
import { step, reportLine } from './report.ts';
import { releaseValues, maxGateMs, type World } from './world.ts';

/** The webhook drains for 20 s on SIGTERM. */
const settledMs = 60_000;
const wait = ['--wait', '--timeout', '2m'];

export async function wholeLife(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster } = world;
  const of = (name: string): string => `${helm.name}: ${name}`;
  await cluster.createNodes([
    { name: 'arm64-0', architecture: 'arm64', pods: 5000 },
    { name: 's390x-0', architecture: 's390x', pods: 5000 },
  ]);
  await cluster.create(podOf({ name: 'old', images: [world.image('public/multi')], node: nodeName }));
  await nodeArchitectureOf(cluster, 'old');
  const before = await steadyListing(cluster);

  const previous = await packaged(helm, '0.0.9');
  const values = helm.values('card', releaseValues(world));
  await step(of('install of an earlier chart, until it is ready and the check after it passed'), async () => {
    const out = await helm.run('install', 'archwright', previous, values, ...wait);
    assert.match(out, /kubectl archwright status\n$/);
    assert.doesNotMatch(out, /TEST SUITE: {2,}/);
    await untilReady(cluster);
    await untilWebhooksInForce(cluster);
  });
  await step(of('helm test'), async () => {
    const out = await helm.run('test', 'archwright', '--timeout', '2m');
    assert.deepEqual(out.match(/(?<=TEST SUITE: +)\S+/g), ['archwright-test', 'archwright-test-rights']);
  });
  await documentedCommands(world, of);
  await placements(world, of);
  await gates(world, of);

  // A changed ConfigMap reaches running pods a minute or two later; a changed annotation replaces them.
  const changed = helm.values('changed', {
    ...releaseValues(world),
    preferredArchitecture: 's390x',
    pod: { annotations: { 'e2e.example/revision': '2' } },
  });
  await whileCreatingPods(world, of('upgrade to this chart with changed values'), async () => {
    await helm.run('upgrade', 'archwright', chart, changed, ...wait);
    await untilReady(cluster);
  });
  await expectArchitecture(world, { name: 'after-upgrade', images: [world.image('public/multi')] }, 's390x');
  await whileCreatingPods(world, of('rollback'), async () => {
    await helm.run('rollback', 'archwright', '1', ...wait);
    await untilReady(cluster);
  });
  await expectArchitecture(world, { name: 'after-rollback', images: [world.image('public/multi')] }, 'amd64');
  for (const part of partNames) {
    await whileCreatingPods(world, of(`every ${part} crashes`), async () => {
      crash(part);
      await pause(3_000);
      await untilReady(cluster);
    });
    await whileCreatingPods(world, of(`every pod of the ${part} is deleted at once`), async () => {
      await deletePart(cluster, part);
      await pause(3_000);
      await untilReady(cluster);
    });
    await expectArchitecture(
      world,
      { name: `after-${part}`, images: [world.image('plugin/mainframe')] },
      's390x',
    );
  }
  await checkRemoval(world, helm, before);
  await step(of('no request was refused for a missing right'), () => expectNothingForbidden(logs));
}

async function packaged(helm: Helm, version: string): Promise<string> {
  const directory = `/tmp/${helm.name}/packages`;
  await helm.run('package', chart, '--version', version, '--destination', directory);
  return `${directory}/archwright-${version}.tgz`;
}

async function placements(world: World, of: (name: string) => string): Promise<void> {
  const { cluster, image } = world;
  const cases: readonly (readonly [string, Omit<WantedPod, 'name'>, string])[] = [
    ['public, several architectures: the preferred one', { images: [image('public/multi')] }, 'amd64'],
    ['its label overrides the preference', { images: [image('public/multi')], preferred: 'arm64' }, 'arm64'],
    ['public, one architecture', { images: [image('public/arm')] }, 'arm64'],
    ['public, one architecture, of the real node', { images: [image('public/intel')] }, 'amd64'],
    ['private by a plugin, several', { images: [image('plugin/multi')] }, 'amd64'],
    ['private by a plugin, one', { images: [image('plugin/mainframe')] }, 's390x'],
    ['private by creds/<registry>.toml, one', { images: [image('team/arm')] }, 'arm64'],
    [
      'private by creds/<registry>.toml, several',
      { images: [image('team/others')], preferred: 's390x' },
      's390x',
    ],
    ['private by a pull secret', { images: [image('secret/multi')], pullSecret: 'pull' }, 'amd64'],
    [
      'two containers: the common architecture',
      { images: [image('public/multi'), image('public/arm')] },
      'arm64',
    ],
    ['pull policy Always', { images: [image('plugin/multi')], pullPolicy: 'Always' }, 'amd64'],
  ];
  await step(of('pods go to nodes that can run their images'), async () => {
    const names = cases.map((_, index) => `placed-${index}`);
    for (const [index, [, wanted]] of cases.entries())
      await cluster.create(podOf({ name: `placed-${index}`, ...wanted }));
    for (const [index, [what, , architecture]] of cases.entries()) {
      assert.equal(await nodeArchitectureOf(cluster, `placed-${index}`), architecture, what);
      const pod = await cluster.waitFor<Pod>(podPath(`placed-${index}`), isPlaced);
      assert(isPlaced(pod), `${what}: it has a decision record`);
    }
    await deletePods(cluster, names);
  });
  await step(of('images without a common architecture are refused, with the reason'), () =>
    assert.rejects(
      cluster.create(podOf({ name: 'torn', images: [image('public/arm'), image('public/intel')] })),
      /app\/arm:1[\s\S]*arm64[\s\S]*app\/intel:1[\s\S]*amd64/,
    ),
  );
}

async function gates(world: World, of: (name: string) => string): Promise<void> {
  const { cluster, registries } = world;
  await step(of('a pod is gated until its image is pushed'), async () => {
    const pod = await cluster.create<Pod>(
      podOf({ name: 'early', images: [`${registries.hosts.plugin}/app/late:1`] }),
    );
    assert(isGated(pod), 'gated');
    await registries.push('plugin', 'app/late', ['s390x']);
    assert.equal(await nodeArchitectureOf(cluster, 'early'), 's390x');
    await deletePods(cluster, ['early']);
  });
  await step(of('a pod of an unreachable registry is ungated after maxGateDuration'), async () => {
    const started = performance.now();
    const pod = await cluster.create<Pod>(podOf({ name: 'lost', images: [`${registries.goneHost}/app:1`] }));
    assert(isGated(pod), 'gated');
    await cluster.waitFor<Pod>(
      podPath('lost'),
      (now) => !isGated(now) && now?.spec.nodeName !== undefined,
      maxGateMs + 20_000,
    );
    const ms = performance.now() - started;
    assert(ms > maxGateMs - 2000, `not before maxGateDuration: ${ms} ms`);
    reportLine({
      fact: `gate of an unreachable registry: ${Math.round(ms)} ms at maxGateDuration ${maxGateMs} ms`,
    });
    await deletePods(cluster, ['lost']);
  });
}

/** Retries, because an old webhook serves open connections until it ends. */
async function expectArchitecture(world: World, wanted: WantedPod, architecture: string): Promise<void> {
  const { name } = wanted;
  const started = performance.now();
  const placed = async (): Promise<string> => {
    await world.cluster.create(podOf(wanted));
    const found = await nodeArchitectureOf(world.cluster, name);
    await deletePods(world.cluster, [name]);
    return found;
  };
  await step(`${name}: placed as configured now`, async () => {
    while ((await placed()) !== architecture) {
      assert(performance.now() - started < settledMs, `${name}: not on ${architecture} yet`);
      await pause(500);
    }
  });
}
