import t, { type Test } from 'tap';
import { programErrors } from '../../../../src/controller/features/program-errors/program-errors.ts';
import type { Fleet } from '../../../../src/fleet/fleet.ts';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import type { ExecReport } from '../../../../src/nodes/exec-report.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { like } from '../../../support/like.ts';
import { leadThroughout, startLeader } from '../../leader.ts';
import { controllerRef, podPath, putNode, putPod, type PodOptions } from '../../objects.ts';

const minute = 60_000;
const id = 'c'.repeat(64);

async function setup(t: Test, configuration: Partial<Configuration> = {}) {
  const clock = createFakeClock();
  const byNode = new Map<string, ExecReport>();
  const fleet = { execErrors: () => byNode } as unknown as Fleet;
  const test = await startLeader(t, { fleet, clock, configuration });
  putNode(test.store, 'n1', 'arm64');
  const put = (name: string, more: PodOptions = {}): void =>
    void putPod(test.store, name, {
      owner: controllerRef('ReplicaSet', 'web', { uid: 'rs' }),
      image: 'shop/web:1',
      metadata: { uid: `uid-${name}` },
      status: { containerID: `containerd://${id}` },
      ...more,
    });
  const report = (node: string, pod: string, container = id, program = 'sh'): void => {
    const { errors = [] } = byNode.get(node) ?? {};
    byNode.set(node, { state: 'on', errors: [...errors, { pod: `uid-${pod}`, container, program }] });
  };
  return {
    ...test,
    clock,
    byNode,
    put,
    report,
    /** Leads until the events of one look are there. */
    start: async (): Promise<void> => {
      await test.settled();
      leadThroughout(t, programErrors, test);
    },
    podEvents: () => test.events.filter(({ about }) => about.kind === 'Pod'),
  };
}

t.test('an error leads to events on pod and workload, and metrics; nothing is written', async (t) => {
  const { start, put, report, byNode, events, podEvents, store, series, clock } = await setup(t);
  put('web-1');
  report('n1', 'web-1');
  byNode.set('n2', { state: 'no-events', errors: [] });
  await start();
  await store.until(() => events.length === 2, 'the events');
  const message = /^Container app \(shop\/web:1\): sh tried to execute a file, and node n1 \(arm64\) /;
  like(t, events, [
    { type: 'Warning', reason: 'ProgramExecFormatError', about: { kind: 'Pod', name: 'web-1' }, message },
    { about: { kind: 'ReplicaSet', name: 'web', uid: 'rs' }, message: /^Pod web-1: Container app/ },
  ]);
  t.match(events[0]?.message, /another architecture, or a script without "#!"/);
  t.equal(await series('archwright_program_exec_format_errors_total{architecture="arm64"}'), 1);
  t.equal(await series('archwright_program_exec_format_containers'), 1);
  t.equal(await series('archwright_exec_tracing_nodes{state="on"}'), 1);
  t.equal(await series('archwright_exec_tracing_nodes{state="no-events"}'), 1);
  await clock.advance(29 * minute);
  t.equal(podEvents().length, 1, 'not repeated yet');
  await clock.advance(2 * minute);
  await store.until(() => podEvents().length === 2, 'repeated');
  t.strictSame(store.writes(), []);
});

t.test('a node can report only containers of its own pods', async (t) => {
  const { start, put, report, store, podEvents, series } = await setup(t);
  putNode(store, 'n2', 'amd64');
  put('deleted');
  store.fault(`GET ${podPath('deleted')}`, { status: 404 });
  report('n1', 'deleted');
  put('web-1');
  put('web-2', { node: 'n2' });
  report('n2', 'web-1');
  report('n1', 'gone');
  report('n1', 'web-1', 'd'.repeat(64), 'forged');
  report('n2', 'web-2', id, 'real');
  await start();
  await store.until(() => podEvents().length === 1, 'the event');
  t.match(podEvents()[0]?.message, /: real tried/);
  t.equal(await series('archwright_program_exec_format_errors_total{architecture="arm64"}'), 0);
});

t.test('a container that was restarted since, of a DaemonSet; skipped pods are left out', async (t) => {
  const { start, put, report, store, podEvents } = await setup(t, { excludedNamespaces: ['shop'] });
  const lastState = { terminated: { containerID: `cri-o://${id}` } };
  // Looked at first, because it is first in the list.
  put('a-skipped');
  put('daemon', {
    owner: controllerRef('DaemonSet', 'daemon'),
    status: { containerID: 'cri-o://1', lastState },
  });
  report('n1', 'a-skipped');
  report('n1', 'daemon');
  await start();
  await store.until(() => podEvents().some(({ about }) => about.name === 'daemon'), 'the event');
  t.equal(podEvents().length, 1);
});

t.test('a namespace with many errors gets a few events, and delays no other', async (t) => {
  const { start, put, report, store, podEvents, clock } = await setup(t);
  for (let index = 0; index < 20; index += 1) {
    put(`noisy-${index}`, { namespace: 'noisy' });
    report('n1', `noisy-${index}`);
  }
  put('web-1');
  report('n1', 'web-1');
  await start();
  await store.until(() => podEvents().some(({ about }) => about.name === 'web-1'), 'the other namespace');
  t.equal(podEvents().length, 6);
  await clock.advance(30_000);
  await store.until(() => podEvents().length > 6, 'the next ones');
  t.ok(podEvents().length <= 9);
});

t.test('without the monitor, nothing is reported', async (t) => {
  const { start, put, report, clock, events, configure, store } = await setup(t, {
    execFormatErrorMonitor: false,
  });
  put('web-1');
  report('n1', 'web-1');
  await start();
  await clock.advance(minute);
  t.strictSame(events, []);
  configure({ execFormatErrorMonitor: true });
  await clock.advance(15_000);
  await store.until(() => events.length === 2, 'the events');
});
