import { test } from 'tap';
import { isIn, requiring } from '../support/placement-input.ts';
import { clusterOf, podOf, scripted, serve, uid } from './support.ts';
import { like } from '../support/like.ts';

const images = { 'app:1': ['amd64', 'arm64'], 'app:2': ['amd64'], 'debug:1': ['amd64', 's390x'] };
const cluster = clusterOf({ nodeArchitecture: (node) => (node === 'graviton' ? 'arm64' : undefined) });
const running = (images: readonly string[], spec: object = {}): object =>
  podOf(images, { nodeName: 'graviton', ...spec });

test('a new image, or an ephemeral container, that the node cannot run leads to a warning', async (t) => {
  const { admit, metric } = await serve(t, { source: scripted(images), cluster });
  const update = { operation: 'UPDATE', object: running(['app:2']), oldObject: running(['app:1']) };
  const admitted = await admit(update);
  t.ok(admitted.allowed);
  t.strictSame(admitted.operations, []);
  like(t, admitted.warnings, [/app:2 cannot run here: it has amd64, the node is arm64/]);
  t.equal(await metric('archwright_admission_warnings_total'), 1);
  const ephemeralContainers = [{ name: 'debugger', image: 'debug:1' }];
  const debugged = running(['app:1'], { ephemeralContainers });
  const { warnings } = await admit({ ...update, subResource: 'ephemeralcontainers', object: debugged });
  like(t, warnings, [/debug:1 cannot run here/]);
});

test('a new pod with a node that cannot run it leads to a warning, unless it has an owner', async (t) => {
  const source = scripted(images);
  const { admit, metric } = await serve(t, { source, cluster });
  const named = await admit({ object: running(['app:2']) });
  t.ok(named.allowed);
  t.strictSame(named.operations, []);
  like(t, named.warnings, [/app:2 cannot run here: it has amd64, the node is arm64/]);
  t.equal(await metric('archwright_admission_skipped_total{reason="node-name"}'), 1);
  const pinned = requiring({ matchFields: [isIn('metadata.name', 'graviton')] });
  like(t, (await admit({ object: podOf(['app:2'], pinned) })).warnings, [
    /the pod chooses node graviton \(arm64\), but its images can only run on amd64/,
  ]);
  const before = source.lookups.length;
  const ownerReferences = [{ kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true }];
  const owned = { name: 'w', ownerReferences };
  const mirror = { name: 'w', annotations: { 'kubernetes.io/config.mirror': 'x' } };
  for (const metadata of [owned, mirror])
    t.strictSame((await admit({ object: { ...running(['app:2', 'debug:1']), metadata } })).warnings, []);
  t.equal(source.lookups.length, before, 'no image was looked up');
  t.strictSame((await admit({ object: running(['app:1']) })).warnings, []);
});

test('without a new image or a known node, there is no warning and no lookup', async (t) => {
  const source = scripted(images);
  const { admit } = await serve(t, { source, cluster });
  const update = { operation: 'UPDATE', oldObject: running(['app:1']) };
  const cases: [what: string, request: Record<string, unknown>][] = [
    ['no new image', { ...update, object: running(['app:1']) }],
    ['an unknown node', { ...update, object: podOf(['app:2'], { nodeName: 'other' }) }],
    ['no node yet', { ...update, object: podOf(['app:2']) }],
  ];
  for (const [what, request] of cases) t.strictSame((await admit(request)).raw, { uid, allowed: true }, what);
  t.equal(source.lookups.length, 0);
  t.strictSame(
    (await admit({ ...update, object: running(['app:1', 'app:1']) })).raw,
    { uid, allowed: true },
    'a second container with a running image',
  );
});

test('skipped and terminating pods lead to no warning and no lookup', async (t) => {
  const source = scripted(images);
  const namespaceLabels = (namespace: string): Record<string, string> =>
    namespace === 'off' ? { 'arch.example/placement': 'disabled' } : {};
  const { admit } = await serve(t, { source, cluster: { ...cluster, namespaceLabels } });
  const update = { operation: 'UPDATE', oldObject: running(['app:1']) };
  const metadata = { name: 'web' };
  const object = { ...running(['app:2']), metadata };
  const disabled = { ...metadata, labels: { 'arch.example/placement': 'disabled' } };
  const leaving = { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  const cases: [what: string, request: Record<string, unknown>][] = [
    ['an excluded namespace', { namespace: 'kube-system', object }],
    ['a disabled namespace', { namespace: 'off', object }],
    ['a disabled pod', { object: { ...object, metadata: disabled } }],
    ['a terminating pod', { object: { ...object, metadata: leaving } }],
  ];
  for (const [what, request] of cases) {
    t.strictSame((await admit({ ...update, ...request })).raw, { uid, allowed: true }, what);
  }
  t.equal(source.lookups.length, 0);
  t.equal((await admit({ ...update, object })).warnings.length, 1);
});

test('without a cluster, there is no warning', async (t) => {
  const { admit } = await serve(t, { source: scripted(images) });
  const update = { operation: 'UPDATE', oldObject: running(['app:1']), object: running(['app:2']) };
  t.strictSame((await admit(update)).raw, { uid, allowed: true });
});

test('without an old object, all images are new; an invalid one leads to a warning', async (t) => {
  const { admit } = await serve(t, { source: scripted(images), cluster });
  const update = { operation: 'UPDATE', object: running(['app:2']) };
  like(t, (await admit({ ...update, oldObject: null })).warnings, [/app:2 cannot run here/]);
  like(t, (await admit({ ...update, oldObject: { spec: 1 } })).warnings, [/could not be understood/]);
});
