/** The notes on moved workloads: what counts as a cause, what survives a leader, how many are kept. */
import t, { type Test } from 'tap';
import { Causes, type Cause } from '../../../src/controller/misplaced/causes.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { connectedStore } from '../../kube/support.ts';
import { dataAt } from '../objects.ts';
import { digest, notesPath, serverStart } from './setup.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const signal = neverAborted;
const cause: Cause = { uid: 'u', digests: [digest('a'), digest('b')], architecture: 'arm64' };

async function start(t: Test): Promise<{ store: KubeStore; next: () => Causes }> {
  const { store, client } = await connectedStore(t);
  return {
    store,
    next: () => new Causes({ client, namespace: 'archwright', name: 'archwright-moved-pods' }),
  };
}

t.test('what counts as a cause', async (t) => {
  const { next } = await start(t);
  const causes = next();
  await causes.add(cause, serverStart, signal);
  for (const each of [causes, next()]) {
    t.equal(await each.since(cause, signal), serverStart);
    t.equal(await each.since({ ...cause, digests: cause.digests.toReversed() }, signal), serverStart);
    t.equal(await each.since({ ...cause, uid: 'v' }, signal), undefined);
    t.equal(await each.since({ ...cause, architecture: 'amd64' }, signal), undefined);
    t.equal(await each.since({ ...cause, digests: [digest('a')] }, signal), undefined);
  }
});

t.test('beyond the limit, the oldest note is dropped', async (t) => {
  const { store, next } = await start(t);
  const keyOf = (n: number): string => n.toString(16).padStart(32, '0');
  const timeOf = (n: number): string => new Date(serverStart + (n === 7 ? -1 : n) * 1000).toISOString();
  const entries = Array.from({ length: 5000 }, (_, n) => [keyOf(n), timeOf(n)]);
  store.put(notesPath, { data: Object.fromEntries(entries) as object });
  const causes = next();
  await causes.add(cause, serverStart, signal);
  const kept = dataAt(store, notesPath);
  t.equal(Object.keys(kept).length, 5000);
  t.notOk(keyOf(7) in kept);
  t.ok(keyOf(0) in kept);
});

t.test('a deleted ConfigMap is created again', async (t) => {
  const { store, next } = await start(t);
  const causes = next();
  await causes.add(cause, serverStart, signal);
  store.remove(notesPath);
  const another = { ...cause, uid: 'v' };
  await causes.add(another, serverStart, signal);
  t.equal(await causes.since(cause, signal), undefined);
  t.equal(await causes.since(another, signal), serverStart);
});

t.test('the removal of a cause leaves the others', async (t) => {
  const { store, next } = await start(t);
  const causes = next();
  await causes.remove(cause, signal);
  t.equal(store.get(notesPath), undefined, 'without notes, nothing is created');
  await causes.add(cause, serverStart, signal);
  await causes.add({ ...cause, uid: 'v' }, serverStart, signal);
  await causes.remove(cause, signal);
  for (const each of [causes, next()]) {
    t.equal(await each.since(cause, signal), undefined);
    t.equal(await each.since({ ...cause, uid: 'v' }, signal), serverStart);
  }
});
