import { test } from 'tap';
import type { Operation } from '../../src/placement/decision.ts';
import { applied, defaultPolicy as policy } from '../support/placement-input.ts';
import { podOf, scripted, serve, uid, workload, type Admitted } from './support.ts';
import { like } from '../support/like.ts';

const images = { 'app:1': ['amd64', 'arm64'], 'arm:1': ['arm64'], 'intel:1': ['amd64'] };

const withTemplate = (images: readonly string[], more: object = {}): object => ({
  metadata: { name: 'w' },
  ...more,
  spec: { template: { metadata: { labels: { app: 'w' } }, spec: podOf(images).spec } },
});
const cronJob = (images: readonly string[]): object => ({
  spec: { jobTemplate: { spec: { template: { spec: podOf(images).spec } } } },
});

/** An update of a workload. */
const update = (kind: string, object: unknown, oldObject: unknown): Record<string, unknown> =>
  workload(kind, object, { operation: 'UPDATE', oldObject });
const applying = (object: object, { operations }: Admitted): object =>
  applied(object, operations as readonly Operation[]);

test('the template of a DaemonSet is patched in place', async (t) => {
  const { admit, metric } = await serve(t, { source: scripted(images) });
  for (const operation of ['CREATE', 'UPDATE']) {
    const admitted = await admit(workload('DaemonSet', withTemplate(['app:1', 'arm:1']), { operation }));
    t.strictSame(admitted.required, ['arm64'], operation);
    t.ok(admitted.operations.every(({ path }) => path.startsWith('/spec/template/')));
    t.notOk(admitted.gated);
  }
  t.equal(await metric('archwright_admissions_total{kind="DaemonSet",outcome="placed"}'), 2);
});

test('an update that does not change the template starts no rollout', async (t) => {
  const source = scripted(images);
  const { admit } = await serve(t, { source });
  const before = withTemplate(['arm:1']);
  const labeled = withTemplate(['arm:1'], { metadata: { name: 'w', labels: { team: 'a' } } });
  t.strictSame((await admit(update('DaemonSet', labeled, before))).raw, { uid, allowed: true });
  t.equal(source.lookups.length, 0);
  const changed = withTemplate(['arm:1', 'app:1']);
  t.strictSame((await admit(update('DaemonSet', changed, before))).required, ['arm64']);
});

test('a DaemonSet with an unknown image gets no fallback, and the next apply corrects it', async (t) => {
  const falling = { ...policy, onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' } as const;
  const policies = { policyOf: () => falling };
  const away = await serve(t, { source: scripted({}), policies });
  const anew = withTemplate(['arm:1']);
  const first = await away.admit(workload('DaemonSet', anew));
  t.strictSame(first.required, undefined);
  const object = applying(anew, first);
  const again = update('DaemonSet', object, object);
  t.strictSame((await away.admit(again)).operations, [], 'still unknown, no rollout');
  const { admit } = await serve(t, { source: scripted(images), policies });
  const corrected = await admit(again);
  t.strictSame(corrected.required, ['arm64']);
  const fixed = applying(object, corrected);
  const later = await admit(update('DaemonSet', fixed, fixed));
  t.strictSame(later.raw, { uid, allowed: true }, 'unchanged after that');
});

test('a DaemonSet that is replaced while the registry fails keeps its placement', async (t) => {
  const { admit } = await serve(t, { source: scripted(images) });
  const anew = withTemplate(['arm:1']);
  const placed = applying(anew, await admit(workload('DaemonSet', anew)));
  const away = await serve(t, { source: scripted({}) });
  const change = update('DaemonSet', anew, placed);
  t.strictSame(applying(anew, await away.admit(change)), placed);
  t.strictSame((await away.admit(update('DaemonSet', anew, { spec: {} }))).required, undefined);
  t.strictSame((await away.admit({ ...change, operation: 'CREATE' })).required, undefined);
});

test('terminating workloads are admitted, whatever their template', async (t) => {
  const source = scripted(images);
  const { admit } = await serve(t, { source });
  const metadata = { name: 'w', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [] };
  for (const kind of ['DaemonSet', 'Deployment', 'StatefulSet', 'Job']) {
    const leaving = withTemplate(['arm:1', 'intel:1'], { metadata });
    const admitted = await admit(update(kind, leaving, withTemplate(['arm:1'])));
    t.strictSame(admitted.raw, { uid, allowed: true }, kind);
  }
  t.equal(source.lookups.length, 0);
});

test('other workloads are not changed; the user who applies them gets a warning', async (t) => {
  const { admit, metric } = await serve(t, { source: scripted(images) });
  const bad = ['arm:1', 'intel:1'];
  for (const kind of ['Deployment', 'StatefulSet', 'ReplicaSet', 'Job', 'CronJob']) {
    const make = kind === 'CronJob' ? cronJob : withTemplate;
    const warned = await admit(workload(kind, make(bad)));
    t.ok(warned.allowed, kind);
    t.strictSame(warned.operations, [], kind);
    like(t, warned.warnings, [/arm:1 has arm64; intel:1 has amd64/], kind);
    t.strictSame((await admit(workload(kind, make(['app:1', 'arm:1'])))).raw, { uid, allowed: true }, kind);
    t.equal(await metric(`archwright_admissions_total{kind="${kind}",outcome="unconstrained"}`), 2);
  }
});

test('a workload with an owner is not checked again', async (t) => {
  const source = scripted(images);
  const { admit } = await serve(t, { source });
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'u', controller: true };
  const owned = withTemplate(['arm:1', 'intel:1'], { metadata: { ownerReferences: [owner] } });
  t.strictSame((await admit(workload('ReplicaSet', owned))).raw, { uid, allowed: true });
  t.equal(source.lookups.length, 0);
});

test('other kinds, operations and subresources are admitted without a decision', async (t) => {
  const source = scripted(images);
  const { admit, metric } = await serve(t, { source });
  const object = podOf(['arm:1']);
  const scaled = { spec: { replicas: 3 } };
  const kindOf = (group: string, kind: string) => ({ group, version: 'v1', kind });
  const cases: [what: string, request: Record<string, unknown>][] = [
    ['delete', { operation: 'DELETE', object: null, oldObject: object }],
    ['connect', { operation: 'CONNECT', subResource: 'exec', object }],
    ['binding', { subResource: 'binding', object }],
    ['status', { operation: 'UPDATE', subResource: 'status', object }],
    ['scale', workload('Deployment', scaled, { operation: 'UPDATE', subResource: 'scale' })],
    ['a ConfigMap', { kind: kindOf('', 'ConfigMap'), object: {} }],
    ['a Pod of another API group', { kind: kindOf('example.com', 'Pod'), object }],
    ['a Deployment of another API group', { kind: kindOf('example.com', 'Deployment'), object }],
  ];
  for (const [what, request] of cases) t.strictSame((await admit(request)).raw, { uid, allowed: true }, what);
  t.equal(source.lookups.length, 0);
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="ignored"}'), 4);
  t.equal(await metric('archwright_admissions_total{kind="other",outcome="ignored"}'), 3);
});

test('an invalid template is admitted and counted', async (t) => {
  const { admit, metric } = await serve(t, { source: scripted(images) });
  for (const object of [{}, { spec: {} }, { spec: { template: [] } }, null]) {
    const admitted = await admit(workload('DaemonSet', object));
    like(t, admitted.raw, { uid, allowed: true });
    like(t, admitted.warnings, [/spec\.template is not an object/]);
  }
  const { warnings } = await admit(workload('CronJob', {}));
  like(t, warnings, [/spec\.jobTemplate\.spec\.template is not an object/]);
  t.equal(await metric('archwright_admissions_total{kind="DaemonSet",outcome="fault"}'), 4);
});
