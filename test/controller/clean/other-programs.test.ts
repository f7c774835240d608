import t from 'tap';
import { cleanOtherProgram, otherPrograms } from '../../../src/controller/clean/other-programs.ts';
import type { CleanReport } from '../../../src/controller/clean/report.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { podPath, world, type World } from './support.ts';

const theirs = { name: 'multiarch.openshift.io/scheduling-gate' };
const ours = { name: 'arch.example/scheduling-gate' };
const taint = (key: string, value: string) => ({ key, value, effect: 'NoSchedule' });

function fill(store: KubeStore): void {
  const spec = { containers: [{ name: 'c', image: 'web' }] };
  store.put(podPath('theirs'), { spec: { ...spec, schedulingGates: [theirs] } });
  store.put(podPath('both'), { spec: { ...spec, schedulingGates: [ours, theirs] } });
  store.put(podPath('ours'), { spec: { ...spec, schedulingGates: [ours] } });
  store.put('/api/v1/nodes/n1', {
    spec: { taints: [taint('supported-arch', 'amd64'), taint('other', 'x')] },
    status: { nodeInfo: { architecture: 'amd64' } },
  });
}

function cleanOf({ clean }: World, program: string, dryRun = false): Promise<CleanReport> {
  const leftovers = otherPrograms[program];
  if (!leftovers) throw new TypeError(program);
  return clean({ dryRun }, {}, (options) => cleanOtherProgram(options, leftovers));
}

const gatesOf = (store: KubeStore, name: string): unknown =>
  (store.get(podPath(name)) as { spec?: { schedulingGates?: unknown } } | undefined)?.spec?.schedulingGates;
const taintsOf = (store: KubeStore): unknown =>
  (store.get('/api/v1/nodes/n1') as { spec?: { taints?: unknown } } | undefined)?.spec?.taints;

t.test('the gates of the operator, and nothing else', async (t) => {
  const here = await world(t);
  fill(here.store);
  const dry = await cleanOf(here, 'multiarch-tuning-operator', true);
  t.match(dry, { dryRun: true, steps: [{ step: 'gates', done: 2 }] });
  t.same(here.store.writes(), []);
  t.match(await cleanOf(here, 'multiarch-tuning-operator'), {
    complete: true,
    steps: [{ step: 'gates', done: 2, failures: [] }],
  });
  t.same(gatesOf(here.store, 'theirs'), []);
  t.same(gatesOf(here.store, 'both'), [ours]);
  t.same(gatesOf(here.store, 'ours'), [ours]);
  t.same(taintsOf(here.store), [taint('supported-arch', 'amd64'), taint('other', 'x')]);
});

t.test('the taints of archaware-controller, and nothing else', async (t) => {
  const here = await world(t);
  fill(here.store);
  t.match(await cleanOf(here, 'archaware-controller'), {
    complete: true,
    steps: [{ step: 'taints', done: 1 }],
  });
  t.same(taintsOf(here.store), [taint('other', 'x')]);
  t.same(gatesOf(here.store, 'both'), [ours, theirs]);
});

t.test('what could not be removed is told', async (t) => {
  const here = await world(t);
  fill(here.store);
  here.store.fault(/^PATCH .*pods\/theirs$/, { status: 403, message: 'pods is forbidden' });
  t.match(await cleanOf(here, 'multiarch-tuning-operator'), {
    complete: false,
    steps: [{ step: 'gates', done: 1, failures: [{ what: 'pod shop/theirs', why: /forbidden/ }] }],
  });
});
