/** Attack: forged records. Only a record that archwright wrote for an object can remove parts of it. */
import { test, type Test } from 'tap';
import type { Pod } from '../../src/kube/api/objects.ts';
import { keys } from '../../src/names/keys.ts';
import type { Operation } from '../../src/placement/decision.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { plainPaths } from '../../src/webhook/admission-paths.ts';
import { applied, archIn, requiring, termOf, termsOf } from '../support/placement-input.ts';
import { podOf, scripted, serve, workload } from './support.ts';

/** @param key empty: the Secret has no key */
async function start(t: Test, key = 'K'.repeat(43)) {
  const paths = { ...plainPaths, recordKey: () => (key === '' ? undefined : secret(key)) };
  const source = scripted({ 'app:1': ['amd64', 'arm64'], 'app:2': ['arm64'] });
  const { admit } = await serve(t, { paths, source });
  /** The object as it is stored. */
  return async <T extends object>(object: T, more: Readonly<Record<string, unknown>> = {}): Promise<T> => {
    const { operations } = await admit({ object, ...more });
    return applied(object, operations as readonly Operation[]);
  };
}

/** The requirement of another policy, and a record that claims that archwright added it. */
const forged = {
  v: 1,
  outcome: 'placed',
  imagesKey: 'x',
  added: { terms: [[['kubernetes.io/arch', ['amd64']]]], made: true },
};

function withRecord(pod: Pod, record: string): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { [keys.decision]: record } } };
}

const recordOf = ({ metadata }: Pick<Pod, 'metadata'>): string =>
  metadata?.annotations?.[keys.decision] ?? '';

test('a forged record removes nothing', async (t) => {
  const admit = await start(t);
  const others = podOf(['app:1'], requiring(termOf(archIn('amd64'))));
  const sealed = `${JSON.stringify(forged).slice(0, -1)},"seal":"${'A'.repeat(22)}"}`;
  for (const record of [JSON.stringify(forged), sealed, `${sealed} `, sealed.replace('A"}', '"}')]) {
    const stored = await admit(withRecord(others, record));
    t.strictSame(termsOf(stored), termsOf(others), record);
  }
});

test('while the Secret has no key, no record removes anything', async (t) => {
  const [admit, later] = [await start(t, ''), await start(t)];
  const others = podOf(['app:1'], requiring(termOf(archIn('amd64'))));
  for (const end of ['', ',"seal":""', `,"seal":"${'A'.repeat(22)}"`]) {
    const record = `${JSON.stringify(forged).slice(0, -1)}${end}}`;
    for (const call of [admit, later]) {
      t.strictSame(termsOf(await call(withRecord(others, record))), termsOf(others), record);
    }
  }
  const both = archIn('amd64', 'arm64');
  const first = await admit(podOf(['app:1']));
  t.strictSame(termsOf(first), [termOf(both)], 'pods are still placed');
  for (const call of [admit, later]) {
    t.strictSame(
      termsOf(await call(first)),
      [termOf(both, both)],
      'in a second call, additions count as their own',
    );
  }
});

test('a record of another object removes nothing', async (t) => {
  const admit = await start(t);
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u1', controller: true };
  const mine = podOf(['app:2']);
  const stolen = recordOf(await admit(mine));
  t.match(stolen, /"seal":"[\w-]{22}"\}$/);
  const constraint = requiring(termOf(archIn('arm64')));
  const victim = (metadata: NonNullable<Pod['metadata']>): Pod => ({
    ...podOf(['app:1'], constraint),
    metadata,
  });
  const others: readonly (readonly [NonNullable<Pod['metadata']>, Readonly<Record<string, unknown>>?])[] = [
    [{ generateName: 'api-' }],
    [{ name: 'web-x' }],
    [{ generateName: 'web-', ownerReferences: [owner] }],
    [{ generateName: 'web-' }, { namespace: 'other' }],
  ];
  for (const [metadata, more] of others) {
    const stored = await admit(withRecord(victim(metadata), stolen), more);
    t.strictSame(termsOf(stored), [termOf(archIn('arm64'))], JSON.stringify([metadata, more]));
  }
  const changed = stolen.replace('"arm64"', '"amd64"');
  const constrained = podOf(['app:1'], requiring(termOf(archIn('amd64'))));
  t.strictSame(termsOf(await admit(withRecord(constrained, changed))), [termOf(archIn('amd64'))]);
  const otherKey = await start(t, 'L'.repeat(43));
  t.strictSame(termsOf(await otherKey(withRecord(victim({ generateName: 'web-' }), stolen))), [
    termOf(archIn('arm64')),
  ]);
});

test("archwright's own record is replaced: in a second call, and if its output is submitted again", async (t) => {
  const admit = await start(t);
  for (const pod of [podOf(['app:1']), { ...podOf(['app:1']), metadata: { name: 'web' } }]) {
    const first = await admit(pod);
    t.strictSame(await admit(first), first, 'a second call');
    // The API server has generated the name.
    const stored = { ...first, metadata: { ...first.metadata, name: first.metadata?.name ?? 'web-x7k2p' } };
    t.strictSame(termsOf(await admit(stored)), termsOf(first), 'submitted again');
    const image = { ...first.spec.containers[0], name: 'c0', image: 'app:2' };
    const other = { ...first, spec: { ...first.spec, containers: [image] } };
    t.strictSame(
      termsOf(await admit(other)),
      [termOf(archIn('arm64'))],
      'with an image added by another webhook',
    );
  }
});

test('in updates of a template, the stored record counts, not a forged one', async (t) => {
  const admit = await start(t);
  const daemonSet = (pod: Pod) => ({ metadata: { name: 'agent' }, spec: { template: pod } });
  const template = (images: readonly string[], spec: Partial<Pod['spec']> = {}): Pod => ({
    metadata: { labels: { app: 'agent' } },
    spec: podOf(images, spec).spec,
  });
  const created = await admit(
    daemonSet(template(['app:1'])),
    workload('DaemonSet', undefined, { object: daemonSet(template(['app:1'])) }),
  );
  const stored = created.spec.template;
  t.strictSame(termsOf(stored), [termOf(archIn('amd64', 'arm64'))]);
  const update = (pod: Pod) => {
    const object = daemonSet(pod);
    const more = workload('DaemonSet', object, { operation: 'UPDATE', oldObject: created });
    return admit(object, more).then(({ spec }) => spec.template);
  };
  const { containers } = template(['app:2']).spec;
  const changed = { ...stored, spec: { ...stored.spec, containers } };
  t.strictSame(termsOf(await update(changed)), [termOf(archIn('arm64'))], 'its own record');
  const { annotations: _, ...metadata } = stored.metadata ?? {};
  t.strictSame(
    termsOf(await update({ ...changed, metadata })),
    [termOf(archIn('arm64'))],
    'the stored record',
  );
  const others = template(['app:1'], requiring(termOf(archIn('amd64'))));
  t.strictSame(
    termsOf(await update(withRecord(others, JSON.stringify(forged)))),
    [termOf(archIn('amd64'))],
    'forged',
  );
});
