/** Pods: those that are created, and new images of running ones. */
import { test } from 'tap';
import { like } from '../support/like.ts';
import { defaultPolicy as policy, isIn, onArch, requiring } from '../support/placement-input.ts';
import { clusterOf, podOf, review, scripted, serve, uid } from './support.ts';

const source = scripted({
  'app:1': ['amd64', 'arm64'],
  'sidecar:1': ['arm64', 's390x'],
  'legacy:1': ['amd64'],
});

test('a pod requires the architectures that all of its images share', async (t) => {
  const { admitPod, metric } = await serve(t, { source });
  const admitted = await admitPod(['app:1', 'sidecar:1']);
  t.strictSame(admitted.required, ['arm64']);
  like(t, admitted.raw, { uid, allowed: true, patchType: 'JSONPatch' });
  t.notOk(
    admitted.operations.some(({ op }) => op === 'test' || op === 'remove'),
    'operations that cannot fail',
  );
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="placed"}'), 1);
  t.equal(await metric('archwright_admission_duration_seconds_count'), 1);
});

test('no common architecture is denied with a message for the user', async (t) => {
  const { admitPod } = await serve(t, { source });
  const admitted = await admitPod(['legacy:1', 'sidecar:1']);
  t.notOk(admitted.allowed);
  like(t, admitted.raw, { uid, status: { code: 403 } });
  t.match(admitted.message, /legacy:1 has amd64; sidecar:1 has arm64, s390x/);
  t.notOk('patch' in admitted.raw);
});

test('under `constraints: widen`, a pod that names an architecture is widened, with a warning and a metric', async (t) => {
  const widening = { policyOf: () => ({ ...policy, constraints: 'widen' as const }) };
  const { admitPod, metric } = await serve(t, { source, policies: widening });
  const admitted = await admitPod(['app:1'], onArch('amd64'));
  t.strictSame(admitted.required, ['amd64', 'arm64']);
  t.strictSame(admitted.operations[0], { op: 'add', path: '/spec/nodeSelector', value: {} });
  like(t, admitted.warnings, [/\(amd64\) is widened to amd64, arm64/]);
  t.equal(await metric('archwright_admission_widened_total'), 1);
});

test('a known image causes no lookup and no log line', async (t) => {
  const source = scripted({ 'app:1': ['amd64'] });
  const { admitPod, lines, metric } = await serve(t, { source });
  await admitPod(['app:1']);
  const before = lines.length;
  for (let turn = 0; turn < 20; turn += 1) {
    t.strictSame((await admitPod(['app:1'])).required, ['amd64']);
  }
  t.equal(source.lookups.length, 1);
  t.equal(lines.length, before, 'no line per request');
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="answered"}'), 1);
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="expired"}'), 0);
});

test('an unknown image leads to a gate, and known images restrict the pod', async (t) => {
  const { admitPod, metric } = await serve(t, { source });
  const admitted = await admitPod(['app:1', 'nowhere:1']);
  t.ok(admitted.gated);
  t.strictSame(admitted.required, ['amd64', 'arm64']);
  like(t, admitted.warnings, [/nowhere:1: not-found/]);
  t.equal(await metric('archwright_admission_unknown_images_total{code="not-found"}'), 1);
  t.equal(await metric('archwright_admission_warnings_total'), 1);
});

test('an invalid image reference is admitted and counted', async (t) => {
  const { admitPod, metric } = await serve(t, { source });
  const admitted = await admitPod(['UPPER/case::', 'app:1']);
  t.ok(admitted.allowed);
  t.notOk(admitted.gated);
  t.strictSame(admitted.required, ['amd64', 'arm64']);
  t.equal(await metric('archwright_admission_unknown_images_total{code="invalid-reference"}'), 1);
});

test('skipped pods are counted by reason, without lookups', async (t) => {
  const source = scripted({});
  const { admit, metric } = await serve(t, { source });
  const containers = [{ name: 'c', image: 'a:1', imagePullPolicy: 'Never' }];
  const cases: [reason: string, request: Record<string, unknown>][] = [
    ['node-name', { object: podOf(['a:1'], { nodeName: 'n1' }) }],
    ['excluded-namespace', { object: podOf(['a:1']), namespace: 'kube-system' }],
    ['no-image', { object: podOf([], { containers }) }],
  ];
  for (const [reason, request] of cases) {
    const admitted = await admit(request);
    t.strictSame(admitted.raw, { uid, allowed: true }, reason);
    t.equal(await metric(`archwright_admission_skipped_total{reason="${reason}"}`), 1);
  }
  t.equal(source.lookups.length, 0);
});

test('under the log level debug, there is one line, without the object', async (t) => {
  const { admit, admitPod, lines } = await serve(t, { source, level: 'debug' });
  await admitPod(['app:1'], { serviceAccountName: 'do-not-print' });
  like(t, lines.at(-1), { level: 'debug', uid, kind: 'Pod', namespace: 'shop', outcome: 'placed' });
  t.notMatch(JSON.stringify(lines), 'do-not-print');
  for (const names of [{ name: 'web-0' }, { generateName: 'web-5d8-' }]) {
    await admit({ object: { ...podOf(['app:1']), metadata: names } });
    like(t, lines.at(-1), names, 'with the name of the pod');
  }
});

test('/validate allows everything', async (t) => {
  const { admit, post } = await serve(t);
  t.strictSame((await admit({ object: podOf(['nowhere:1']) }, '/validate')).raw, { uid, allowed: true });
  t.strictSame((await admit({ operation: 'DELETE' }, '/validate')).raw, { uid, allowed: true });
  t.equal((await post('{}', { path: '/validate' })).status, 400);
  for (const path of ['elsewhere', 'mutated', 'mutat', 'mutate&timeout=1s', 'mutate/', 'mutate/x', ''])
    like(t, await post(review({}), { path: `/${path}` }), { status: 404 }, path);
  for (const path of ['/mutate', '/mutate?', '/mutate?timeout=1s']) {
    like(t, await post(review({ object: podOf(['app:1']) }), { path }), { status: 200 }, path);
  }
});

test('a response with non-ASCII characters is complete', async (t) => {
  const { post } = await serve(t);
  for (const strange of ['grün', '小さい', '\u00ff']) {
    const answer = await post(review({ object: podOf(['app:1']) }).replace(uid, strange));
    t.equal((JSON.parse(answer.body) as { response: { uid: string } }).response.uid, strange);
  }
});

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

test('without an old object, all images are new; an invalid one leads to a warning', async (t) => {
  const { admit } = await serve(t, { source: scripted(images), cluster });
  const update = { operation: 'UPDATE', object: running(['app:2']) };
  like(t, (await admit({ ...update, oldObject: null })).warnings, [/app:2 cannot run here/]);
  like(t, (await admit({ ...update, oldObject: { spec: 1 } })).warnings, [/could not be understood/]);
});
