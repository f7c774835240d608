/**
 * Pod Security refuses the agents. `helm test` and `archwright status` name the cause, and no new pod waits for an agent. When the
 * namespace allows agents, everything works.
 */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { listEverything } from '../cluster/listing.ts';
import { isGated, podPath } from '../cluster/pods.ts';
import { nothingForbidden, sameAsBefore } from './leaving.ts';
import type { Followed } from './logs.ts';
import { webhooksInForce, whole } from './parts.ts';
import { deletePods, isPlaced, podOf } from './pods.ts';
import { kubectlOf, namespace, type Helm } from './release.ts';
import { step } from './report.ts';
import { cardValues, type World } from './world.ts';

const launcher = fileURLToPath(new URL('../../../cmd/archwright.js', import.meta.url));
/** No agent has answered for 30 s; a loaded machine gets more. */
const patienceMs = 90_000;

export async function noAgents(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster, image } = world;
  const of = (name: string): string => `${helm.name}, no agents: ${name}`;
  const allow = (level: string): Promise<unknown> =>
    cluster.merge(`/api/v1/namespaces/${namespace}`, {
      metadata: { labels: { 'pod-security.kubernetes.io/enforce': level } },
    });
  const before = await listEverything(cluster);
  await allow('baseline');
  const values = helm.values('no-agents', {
    ...cardValues(world),
    startupCheck: { enabled: false, timeout: '30s' },
  });
  await step(of('install'), async () => {
    await helm.run('install', 'archwright', chart, values, '--timeout', '2m');
    await webhooksInForce(cluster);
  });
  const cause = /no agent answers archwright-webhook[^]*violates PodSecurity/;
  await step(of('helm test fails, and the log of its pod names the cause'), async () => {
    const { code, text } = await helm.tryRun('test', 'archwright', '--timeout', '2m');
    assert.notEqual(code, 0, text);
    assert.match(await archwright(world)(['logs', '-n', namespace, 'archwright-test']), cause);
  });
  await step(of('archwright status names the cause'), () =>
    assert.rejects(archwright(world)(['archwright', 'status']), (error: Error) => {
      assert.match(error.message, /exit code 1/);
      assert.match(error.message, cause);
      return true;
    }),
  );
  await step(of('new pods are not gated'), async () => {
    const end = performance.now() + patienceMs;
    for (let count = 0; ; count += 1) {
      const name = `alone-${count}`;
      const pod = await cluster.create<Pod>(podOf({ name, images: [image('plugin/multi')] }));
      if (!isGated(pod)) {
        await cluster.waitFor<Pod>(podPath(name), (now) => now?.spec.nodeName !== undefined);
        await deletePods(cluster, [name]);
        return;
      }
      await deletePods(cluster, [name]);
      assert(performance.now() < end, 'pods are gated, and no agent answers');
    }
  });
  await allow('privileged');
  await step(of('agents may run now: helm test and status find nothing wrong'), async () => {
    // The DaemonSet controller tries again later and later.
    await archwright(world)(['-n', namespace, 'rollout', 'restart', 'daemonset', 'archwright-agent']);
    await whole(cluster);
    await helm.run('test', 'archwright', '--timeout', '2m');
    await archwright(world)(['archwright', 'status']);
    const pod = await cluster.create<Pod>(podOf({ name: 'again', images: [image('plugin/multi')] }));
    assert(isPlaced(pod) || isGated(pod));
    await deletePods(cluster, ['again']);
  });
  await step(of('uninstall'), () => helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m'));
  await sameAsBefore(world, helm, before);
  await step(of('no request was refused for a missing right'), () => nothingForbidden(logs));
}

/** kubectl with the plugin. */
function archwright({ cluster }: World) {
  const plugins = '/tmp/plugins-no-agents';
  mkdirSync(plugins, { recursive: true });
  try {
    symlinkSync(launcher, join(plugins, 'kubectl-archwright'));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  return kubectlOf(cluster, [plugins, dirname(process.execPath), '/usr/bin', '/bin'].join(':'));
}
