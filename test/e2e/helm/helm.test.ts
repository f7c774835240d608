/**
 * The chart in a cluster with a real node, installed by Helm 4 and Helm 3; the plain manifests by kubectl.
 * Our image is built, pushed, pulled by a kubelet and run by containerd. The API server calls the webhook,
 * which calls an agent, which uses the node's plugin and the registries. Runs in a box (`../box/box.ts`).
 *
 *   E2E_CONTAINERD=1.7     containerd of the node. Default: 2.
 *   ARCHWRIGHT_E2E_KEEP    folder for the logs. Default: the ends of the logs are printed after a failure.
 */
import t from 'tap';
import { runSuite } from './suite.ts';

/** About eight minutes on two cores; a loaded machine needs more. */
const timeoutMs = 20 * 60_000;

void t.test('the chart works in a cluster with a real node', { timeout: timeoutMs + 120_000 }, (t) =>
  runSuite(t, { entry: new URL('inside.ts', import.meta.url), timeoutMs }),
);
