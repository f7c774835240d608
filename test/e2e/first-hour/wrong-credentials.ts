/** Three wrong credentials: the path of the plugins, a key of a Secret, and the name of a pull secret. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { isGated, podPath, workload, type EventNow } from '../cluster/control-plane/pods.ts';
import { untilReady } from '../helm/parts.ts';
import { deletePods, isPlaced, podOf } from '../helm/pods.ts';
import { namespace, type Outcome } from '../helm/release.ts';
import { step, reportLine } from '../helm/report.ts';
import type { World } from '../helm/world.ts';
import { expectEvents, expectExplain, expectReport, expectStatus } from './diagnostics.ts';
import { expectCode, type Readme } from './readme.ts';

/**
 * The first pod is placed about 6 s after the start of `helm install` on two idle cores, mostly the start of
 * programs. `.ci/run`, with three lanes on these cores, and a load of 20 (47 s) need a multiple of it.
 */
const firstPodMs = 120_000;

/** Pods must wait until their credentials are repaired. A loaded machine may exceed the default of 5 min. */
export const maxGateDuration = '30m';

/** Each takes most of a second. */
const mostApplied = 10;

export async function wrongCredentials(world: World, readme: Readme): Promise<void> {
  const { cluster, registries } = world;
  const { hosts } = registries;
  const of = (name: string): string => `wrong credentials: ${name}`;
  await prepare(world, readme);
  await step(of('helm install; the first pod is placed meanwhile'), async () => {
    const from = performance.now();
    const installing = readme
      .run('helm install archwright')
      .then((outcome) => ({ outcome, ms: Math.round(performance.now() - from) }));
    const first = await firstPlaced(world, from);
    const { outcome, ms } = await installing;
    expectCode(outcome, 0);
    reportLine({
      fact: `first pod placed ${first} ms after the start of helm install, which ended after ${ms} ms`,
    });
  });
  await step(of('no pod of the fresh install has waited for a volume'), () => noMissingVolumes(world));
  await step(of('a pod with a public image is placed'), async () => {
    expectCode(await readme.run('kubectl run web'), 0);
    assert.match(expectCode(await readme.run('kubectl -n archwright get pods'), 0), /archwright-agent-/);
    assert.match(expectCode(await readme.run('kubectl get pod web -o yaml'), 0), /kubernetes\.io\/arch/);
    const explained = expectCode(await readme.run('kubectl archwright explain pod/web '), 0);
    assert.match(explained, /decided before: placed, requires amd64, arm64/);
  });
  await step(of('events on pods and their owners name the image and the missing pull secret'), async () => {
    await createPods(world);
    const hint =
      /^Gated: .*until .*\/app\/multi:1: unauthorized: pull secret shop\/login: there is no such Secret/;
    await expectEvents(cluster, ['shop', 'Pod', 'web-0'], hint);
    await expectEvents(
      cluster,
      ['shop', 'StatefulSet', 'web'],
      new RegExp(hint.source.replace('^Gated: ', '^Gated: Pod web-0: ')),
    );
    const refused = /^Gated: .*: unauthorized: the registry requires a valid credential.*kubeletConfig/;
    for (const name of ['by-plugin', 'by-team'])
      await expectEvents(cluster, ['default', 'Pod', name], refused);
  });
  const file = `${hosts.team.replace(':', '_')}_.toml`;
  const problems = [
    new RegExp(
      `credentials are not used: [^\n]*there is no such file; check that its Secret exists and has the key ${file}`,
    ),
    /credentials are not used: [^\n]*config\.yaml[^\n]*there is no such file/,
  ];
  await step(of('events of the DaemonSet and status name the files that are not used'), async () => {
    await expectEvents(cluster, [namespace, 'DaemonSet', 'archwright-agent'], ...problems);
    const gated = [/default\/by-plugin since/, /default\/by-team since/, /shop\/web-0 since/];
    const limit = /^docker hub +76 of 100 requests left$/m;
    const has = [/^credentials +2 problems/m, /^gated pods +3 unauthorized/m, ...gated, ...problems, limit];
    await expectStatus(readme, { code: 1, has });
  });
  await step(of('explain and report name the reason'), async () => {
    const gated = [/decided before: gated/, /created again +gated/];
    const hint = /unauthorized: pull secret shop\/login: there is no such Secret/;
    const refused = /401 for app\/multi without a credential: /;
    const ofPlugin = new RegExp(
      `${refused.source}the node's credential plugin gave none: \\S*config\\.yaml: `,
    );
    await expectExplain(readme, ['default', 'pod/by-plugin'], { code: 3, has: [...gated, ofPlugin] });
    const details = [refused];
    await expectExplain(readme, ['shop', 'pod/web-0'], { code: 3, has: [...gated, hint] }, details);
    const owner = [/pod web-0 on no node yet; decided before: gated/, /its pods +gated/, hint];
    await expectExplain(readme, ['shop', 'statefulset/web'], { code: 3, has: owner }, details);
    const rows = [
      /default +Pod\/web +1 +placed +amd64 .* yes/,
      /default +Pod\/by-team +1 +gated .* unknown +.*unauthorized/,
      new RegExp(`shop +StatefulSet/web +1 +gated .* unknown +.*${hint.source}`),
    ];
    await expectReport(readme, { code: 1, has: rows });
  });
  await step(of('whoever applies a DaemonSet or a template gets the reason as a warning'), async () => {
    const missing = `${hosts.public}/app/none:1`;
    const kinds = [
      ['DaemonSet', world.image('plugin/multi'), 'unauthorized'],
      ['DaemonSet', missing, 'not-found'],
      ['Deployment', missing, 'not-found'],
    ] as const;
    for (const [kind, image, code] of kinds) {
      writeFileSync(join(readme.home, 'warned.json'), JSON.stringify(workload(kind, 'warned', { image })));
      const expected = new RegExp(`Warning: archwright: image ${image}: ${code}: `);
      // A lookup may take longer than `inlineBudget`, and goes on for the next time.
      const outputs: string[] = [];
      while (!outputs.some((out) => expected.test(out))) {
        assert.ok(outputs.length < mostApplied, `${kind} ${image}: ${outputs.join('\n')}`);
        outputs.push(expectCode(await readme.sh('kubectl apply -f warned.json'), 0));
        expectCode(await readme.sh('kubectl delete -f warned.json'), 0);
      }
    }
  });
  await step(of('explain -f shows the patch of pods, and fails for an unknown image'), async () => {
    const explain = async (name: string, image: string): Promise<Outcome> => {
      writeFileSync(join(readme.home, name), JSON.stringify(workload('Deployment', 'web', { image })));
      return readme.sh(`kubectl archwright explain -f ${name} --patch`);
    };
    const known = expectCode(await explain('known.json', 'nginx:1.27'), 0);
    assert.match(known, /its pods +placed[^]*patch: \[\n[^]*"path": "\/spec\/affinity"/);
    const unknown = expectCode(await explain('unknown.json', world.image('plugin/multi')), 3);
    assert.match(unknown, /its pods +gated[^]*"path": "\/spec\/schedulingGates"/);
  });
  await step(of('the column of decisions has the reason, as soon as it is known'), async () => {
    const [columns = ''] =
      /custom-columns=\S+/.exec(expectCode(await readme.sh('helm get notes archwright -n archwright'), 0)) ??
      [];
    const shown = expectCode(await readme.sh(`kubectl get pods -A -o ${columns}`), 0);
    assert.match(shown, /^by-plugin +gated: \S+: unauthorized: /m);
    assert.doesNotMatch(shown, /not inspected yet/);
  });
  await step(of('without a leader, status says what it cannot know'), async () => {
    const scale = async (replicas: number): Promise<void> => {
      const command = `kubectl -n ${namespace} scale deployment archwright-controller --replicas ${replicas}`;
      expectCode(await readme.sh(command), 0);
    };
    await scale(0);
    const gated = [/^gated pods +reasons not known/m, /default\/by-plugin since/];
    const none = /Deployment archwright-controller has no pods, so gated pods wait/;
    await expectStatus(readme, { code: 1, has: [...gated, none], lacks: [/gated pods +none/] });
    await scale(2);
    await untilReady(cluster);
  });
  // Agents answer. Wrong credentials depend on images, so the installation does not fail.
  await step(of('helm test'), async () => expectCode(await readme.run('helm test'), 0));
}

async function prepare({ cluster, registries, plugin }: World, readme: Readme): Promise<void> {
  const { hosts, passwords } = registries;
  // Without the `_` at its end.
  const key = `${hosts.team.replace(':', '_')}.toml`;
  await cluster.make('Secret', `${namespace}/team-login`, {
    stringData: { [key]: `user = "team"\nsecret = "${passwords.team}"\n` },
  });
  await cluster.createNamespace('shop');
  readme.writeValues({
    kubeletConfig: { ...plugin, config: plugin.config.replace('.json', '.yaml') },
    registryCredentials: { [hosts.team]: { existingSecret: 'team-login' } },
    maxGateDuration,
  });
}

/** @returns when a pod was placed, at once or after its gate; milliseconds */
async function firstPlaced({ cluster }: World, from: number): Promise<number> {
  const ms = (): number => Math.round(performance.now() - from);
  const pod = podOf({ name: 'first', images: ['nginx:1.27'] });
  // Dry runs show when the webhook is called. It looks up no image for them.
  while (!isPlaced(await cluster.post<Pod>('/api/v1/namespaces/default/pods', pod, { dryRun: 'All' }))) {
    assert(ms() < firstPodMs, 'the webhook is not called');
    await pause(100);
  }
  await cluster.create(pod);
  const isDone = (now: Pod | undefined): boolean => isPlaced(now) && !isGated(now);
  const placed = await cluster.waitFor<Pod>(podPath('first'), isDone, Math.max(1, firstPodMs - ms()));
  const took = ms();
  assert.match(JSON.stringify(placed?.spec), /"kubernetes\.io\/arch"/);
  await deletePods(cluster, ['first']);
  return took;
}

/** Pods of the release before it may end without their volumes, so only those that stay count. */
async function noMissingVolumes({ cluster }: World): Promise<void> {
  const pods = await cluster.list<Pod>(`/api/v1/namespaces/${namespace}/pods`);
  const stay = pods.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  const names = new Set(stay.map(({ metadata }) => metadata?.name));
  assert(names.size >= 5, [...names].join(' '));
  const events = await cluster.list<EventNow>(`/api/v1/namespaces/${namespace}/events`);
  const ours = events.filter(({ involvedObject }) => names.has(involvedObject?.name ?? ''));
  assert(ours.length > names.size, `${ours.length} events`);
  const texts = ours.map(({ reason, message }) => `${reason}: ${message}`);
  // A kubelet on a busy machine reads an object late, and tries again.
  const alarming = texts.filter((text) => /Mount|Volume/.test(text) && !/timed out waiting/.test(text));
  assert.deepEqual(alarming, []);
}

async function createPods({ cluster, image }: World): Promise<void> {
  await cluster.create(podOf({ name: 'by-plugin', images: [image('plugin/multi')] }));
  await cluster.create(podOf({ name: 'by-team', images: [image('team/arm')] }));
  const pod = { terminationGracePeriodSeconds: 0, imagePullSecrets: [{ name: 'login' }] };
  const more = { namespace: 'shop', serviceName: 'web', pod };
  await cluster.create(workload('StatefulSet', 'web', { image: image('secret/multi') }, more));
}
