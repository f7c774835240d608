/** The three mistakes are repaired: waiting pods are placed, and no problem is left. */
import assert from 'node:assert/strict';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { isGated, podPath, runningPod } from '../cluster/control-plane/pods.ts';
import { isPlaced } from '../helm/pods.ts';
import { namespace } from '../helm/release.ts';
import { step } from '../helm/report.ts';
import type { World } from '../helm/world.ts';
import { expectExplain, expectReport, expectStatus } from './diagnostics.ts';
import { expectCode, type Readme } from './readme.ts';
import { maxGateDuration } from './wrong-credentials.ts';

/** Gated pods are reconciled again within a minute, even without an event. */
const patienceMs = 180_000;

export async function rightCredentials(world: World, readme: Readme): Promise<void> {
  const { cluster } = world;
  const of = (name: string): string => `right credentials: ${name}`;
  await step(of('the Secrets are repaired, and the values by helm upgrade'), () => repair(world, readme));
  await step(of('pods that waited are placed, and run'), async () => {
    const names = [
      ['by-plugin', 'default'],
      ['by-team', 'default'],
      ['web-0', 'shop'],
    ] as const;
    for (const [name, space] of names) {
      const isDone = (now: Pod | undefined): boolean => isPlaced(now) && !isGated(now);
      await cluster.waitFor<Pod>(podPath(name, space), isDone, patienceMs);
    }
    // There is no node for the other one, which is for arm64.
    for (const [name, space] of [names[0], names[2]]) await runningPod(cluster, name, space, patienceMs);
  });
  await step(of('helm test and status find nothing wrong'), async () => {
    expectCode(await readme.run('helm test'), 0);
    const has = [/^credentials +no problem known/m, /^gated pods +none/m];
    await expectStatus(readme, { code: 0, has, lacks: [/Look at/] });
  });
  await step(of('explain and report show the decision and the credential'), async () => {
    const has = [
      /decided before: placed, requires amd64/,
      /created again +placed/,
      /amd64 s390x +memory +pull-secret/,
    ];
    await expectExplain(readme, ['shop', 'pod/web-0'], { code: 0, has });
    const plugin = [/decided before: placed/, /memory +credential-provider/];
    await expectExplain(readme, ['default', 'pod/by-plugin'], { code: 0, has: plugin });
    const rows = [
      /default +Pod\/by-team +1 +placed +- .* yes/,
      /shop +StatefulSet\/web +1 +placed +amd64 .* no .*has amd64, s390x/,
    ];
    await expectReport(readme, { code: 0, has: rows });
  });
  await step(of('see why, as in README.md'), async () => {
    const explained = expectCode(await readme.run('kubectl archwright explain pod/web-0'), 0);
    assert.match(explained, /decided before: placed/);
    const described = expectCode(await readme.run('kubectl -n shop describe pod web-0'), 0);
    assert.match(described, /arch\.example\/summary: placed, requires amd64: all images can run there\n/);
    assert.match(described, /Gated +.*login/);
  });
}

async function repair({ registries }: World, readme: Readme): Promise<void> {
  const { hosts, passwords } = registries;
  const key = `${hosts.team.replace(':', '_')}_.toml`;
  const patch = JSON.stringify({ stringData: { [key]: `user = "team"\nsecret = "${passwords.team}"\n` } });
  expectCode(await readme.sh(`kubectl -n ${namespace} patch secret team-login -p '${patch}'`), 0);
  const login = `--docker-server=${hosts.secret} --docker-username=secret --docker-password='${passwords.secret}'`;
  expectCode(await readme.sh(`kubectl -n shop create secret docker-registry login ${login}`), 0);
  const registryCredentials = { [hosts.team]: { existingSecret: 'team-login' } };
  readme.writeValues({ registryCredentials, maxGateDuration });
  const upgrade = `helm upgrade archwright charts/archwright -n ${namespace} -f values.yaml`;
  expectCode(await readme.sh(upgrade), 0);
}
