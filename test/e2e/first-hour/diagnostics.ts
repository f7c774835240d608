/** Diagnostics: `status`, `explain` outside and inside of the cluster, `report`, events. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '../cluster/harness.ts';
import type { EventNow } from '../cluster/control-plane/pods.ts';
import { watch } from '../cluster/control-plane/watch.ts';
import { namespace, type Outcome } from '../helm/release.ts';
import { expectCode, type Readme } from './readme.ts';

/** The controller fetches agents' problems once a minute; a loaded machine needs more. */
const patienceMs = 180_000;
const pollMs = 1000;

export interface Expected {
  /** Exit code. */
  readonly code: number;
  readonly has?: readonly RegExp[];
  readonly lacks?: readonly RegExp[];
}

function check(what: string, outcome: Outcome, { code, has = [], lacks = [] }: Expected): void {
  const text = expectCode(outcome, code);
  for (const pattern of has) assert.match(text, pattern, `${what}: ${String(pattern)}: ${text}`);
  for (const pattern of lacks) assert.doesNotMatch(text, pattern, `${what}: not ${String(pattern)}: ${text}`);
}

/** Retries `kubectl archwright status` until this output: the controller polls the agents. */
export async function expectStatus(readme: Readme, expected: Expected): Promise<void> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const outcome = await readme.sh('kubectl archwright status');
    try {
      check('status', outcome, expected);
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await pause(pollMs);
  }
}

/** `explain` as plugin of kubectl, and in the pod of a controller. */
export async function expectExplain(
  readme: Readme,
  [inNamespace, object]: readonly [namespace: string, object: string],
  expected: Expected,
  /** Shown only in a controller's pod: addresses of registries and files of nodes. */
  inside: readonly RegExp[] = [],
): Promise<void> {
  const words = `explain ${object} -n ${inNamespace}`;
  const { has = [] } = expected;
  const lookup =
    /Images: looked up through archwright\/archwright-controller, with the credentials of its agents/;
  check('outside', await readme.sh(`kubectl archwright ${words}`), { ...expected, has: [...has, lookup] });
  const exec = `kubectl -n ${namespace} exec deployment/archwright-controller -- archwright ${words}`;
  const agents = /Images: looked up by the agents of endpointslices:archwright\/archwright-agent/;
  check('inside', await readme.sh(exec), { ...expected, has: [...has, ...inside, agents] });
}

export async function expectReport(readme: Readme, expected: Expected): Promise<void> {
  check('report', await readme.sh('kubectl archwright report --architecture arm64'), expected);
}

/** Waits until an object has each of these events, as `REASON: MESSAGE`. @throws Error with its events */
export async function expectEvents(
  cluster: Cluster,
  [inNamespace, kind, name]: readonly [namespace: string, kind: string, name: string],
  ...expected: readonly RegExp[]
): Promise<void> {
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`;
  const path = `/api/v1/namespaces/${inNamespace}/events`;
  const events = await watch<EventNow>(cluster.client, path, { fieldSelector });
  const texts = (): readonly string[] =>
    [...events.objects.values()].map(({ reason = '', message = '' }) => `${reason}: ${message}`);
  const areThere = (): boolean => expected.every((pattern) => texts().some((text) => pattern.test(text)));
  try {
    await events.until(`events of ${kind} ${name}`, areThere, patienceMs);
  } catch (error) {
    throw new Error(`events of ${kind} ${name}: ${texts().join('\n') || 'none'}`, { cause: error });
  } finally {
    events.close();
  }
}
