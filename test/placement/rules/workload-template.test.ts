import { test } from 'tap';
import type { ObjectMeta, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { uncheckedRecord } from '../../../src/placement/record/read.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import {
  applied,
  failed,
  inputOf,
  isIn,
  podOf,
  requiring,
  type Known,
} from '../../support/placement-input.ts';
import { like } from '../../support/like.ts';

const known: Known = { a: 'amd64 arm64', b: 'arm64', c: 'amd64', broken: failed('timeout') };

function daemonSet(pod: Pod, facts: Known = known, policy: Partial<Policy> = {}) {
  const decision = decide(inputOf(pod, facts, policy, { template: 'DaemonSet' }));
  const patch = patchPod(pod, decision, '/spec/template');
  const object = applied({ kind: 'DaemonSet', metadata: { name: 'd' }, spec: { template: pod } }, patch);
  return { decision, patch, template: object.spec.template };
}

test('the template of a DaemonSet gets the required architectures, under its own path', async (t) => {
  const policy: Partial<Policy> = { tolerations: [{ key: 'arch', operator: 'Equal' }] };
  const { decision, patch, template } = daemonSet({ spec: podOf(['b']).spec }, known, policy);
  t.equal(decision.outcome, 'placed');
  t.strictSame(decision.required, ['arm64']);
  t.ok(patch.every(({ path }) => path.startsWith('/spec/template/')));
  t.strictSame(template.spec.tolerations, [{ key: 'arch', operator: 'Equal', value: 'arm64' }]);
  t.match(JSON.stringify(template.spec.affinity), /"values":\["arm64"\]/u);
  t.strictSame(Object.keys(template.metadata?.annotations ?? {}), ['arch.example/decision']);
  t.strictSame(daemonSet(template, known, policy).patch, [], 'an update without a change');
});

test('a failing registry does not change a placed DaemonSet', async (t) => {
  const { template } = daemonSet(podOf(['a', 'b']));
  for (const later of [{}, { a: 'amd64 arm64' }, { b: failed('unavailable') }]) {
    const { decision, patch } = daemonSet(template, later);
    t.strictSame(decision.required, ['arm64']);
    t.equal(decision.outcome, 'placed');
    t.equal(decision.reasons[0]?.rule, 'unknown-image-recorded');
    t.equal(patch.filter(({ path }) => path.includes('/spec/template/spec')).length, 0, 'no new rollout');
  }
  const other = { ...template, spec: { ...template.spec, containers: [{ name: 'n', image: 'new' }] } };
  t.equal(daemonSet(other, {}).decision.required, undefined, 'other images have no earlier placement');
  t.strictSame(
    daemonSet(template, { a: 'amd64' }).decision.required,
    ['amd64'],
    'known facts that contradict it',
  );
});

test('an unknown image does not restrict a DaemonSet, and a later update corrects the template', async (t) => {
  const policy: Partial<Policy> = { onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' };
  const first = daemonSet(podOf(['x']), known, policy);
  t.equal(first.decision.outcome, 'allowed-unknown');
  t.equal(first.decision.required, undefined, 'no fallback, because it would stay');
  t.ok(uncheckedRecord(first.template).isProvisional);
  t.equal(first.template.spec.affinity, undefined);
  t.strictSame(daemonSet(first.template, known, policy).patch, [], 'still unknown');
  const corrected = daemonSet(first.template, { x: 'arm64' }, policy);
  t.strictSame(corrected.decision.required, ['arm64']);
  t.match(JSON.stringify(corrected.template.spec.affinity), /"values":\["arm64"\]/u);
  t.notOk(uncheckedRecord(corrected.template).isProvisional);

  const bound = daemonSet(podOf(['x', 'a']), known, policy);
  t.strictSame(bound.decision.required, ['amd64', 'arm64']);
  t.ok(uncheckedRecord(bound.template).isProvisional);
  t.strictSame(daemonSet(bound.template, {}, policy).patch, [], 'an outage');
  const same = daemonSet(bound.template, { ...known, x: 'arm64 amd64' }, policy);
  t.strictSame(same.patch, [], 'no pod restarts, because the bound was correct');
  const narrower = daemonSet(bound.template, { ...known, x: 'arm64' }, policy).template;
  t.match(JSON.stringify(narrower.spec.affinity), /"values":\["arm64"\]/u);
  const partly = daemonSet(podOf(['x', 'y', 'a']), known, policy).template;
  const later = daemonSet(partly, { ...known, x: 'arm64' }, policy).template;
  t.match(JSON.stringify(later.spec.affinity), /"values":\["arm64"\]/u);
  t.ok(uncheckedRecord(later).isProvisional, 'one image is still unknown');
});

test('a failing registry does not change a placed DaemonSet that is replaced without the additions', async (t) => {
  const anew = podOf(['a', 'b']);
  const { template } = daemonSet(anew);
  const update = (pod: Pod, before: Pod, facts: Known) => {
    const decision = decide(inputOf(pod, facts, {}, { template: 'DaemonSet', before }));
    return applied(pod, patchPod(pod, decision));
  };
  for (const later of [{}, { a: 'amd64 arm64' }, { b: failed('unavailable') }])
    t.strictSame(update(anew, template, later), template, 'the same template');
  t.strictSame(update(podOf(['a', 'new']), template, {}).spec, podOf(['a', 'new']).spec, 'other images');
  t.strictSame(update(anew, anew, {}).spec, anew.spec, 'without an earlier record');
  t.match(JSON.stringify(update(anew, template, { ...known, b: 'amd64' })), /"values":\["amd64"\]/u);
  const twice = { ...template, spec: { ...template.spec, containers: anew.spec.containers } };
  t.strictSame(update(twice, podOf(['x']), {}), template, "the template's own record takes precedence");
});

test('other workloads stay unchanged, with a warning if their images have no common architecture, or are unknown', async (t) => {
  const look = (pod: Pod, policy: Partial<Policy> = {}) => {
    const decision = decide(inputOf(pod, known, policy, { template: 'workload' }));
    t.strictSame(patchPod(pod, decision, '/spec/template'), []);
    t.equal(decision.required, undefined);
    t.equal(decision.gate, false);
    return decision.warnings;
  };
  t.strictSame(look(podOf(['a', 'b'])), []);
  const unknown = look(podOf(['x', 'broken']), { onUnknownImage: 'deny' });
  like(t, unknown, [/^archwright: image broken: unavailable: /u], 'x is not inspected yet');
  like(t, look(podOf(['b', 'c'])), [/pods of this template cannot be placed: .*b has arm64; c has amd64/u]);
  like(t, look(podOf(['b', 'c', 'x'])), [/cannot be placed/u]);
  like(t, look(podOf(['b']), { schedulableArchitectures: ['amd64'] }), [/schedulable ones \(amd64\)/u]);
  const gates = [{ name: 'arch.example/scheduling-gate' }];
  t.strictSame(look(podOf(['a'], { schedulingGates: gates })), []);
  t.strictSame(look(podOf(['b', 'c'], {}, { labels: { 'arch.example/placement': 'disabled' } })), []);
});

test('the user who applies another workload gets the warnings about its pods', async (t) => {
  const look = (images: readonly string[], spec: Partial<PodSpec> = {}, metadata: ObjectMeta = {}) => {
    const pod = podOf(images, spec, metadata);
    const nodeArchitecture = (node: string) => (node === 'graviton' ? 'arm64' : undefined);
    const decision = decide(inputOf(pod, known, {}, { template: 'workload', nodeArchitecture }));
    t.strictSame(patchPod(pod, decision, '/spec/template'), []);
    return decision.warnings;
  };
  const prefers = (value: string): ObjectMeta => ({ labels: { 'arch.example/preferred': value } });
  like(t, look(['x'], {}, prefers('aarch64')), [/unknown architecture aarch64; did you mean arm64\?$/u]);
  t.strictSame(look(['x'], {}, prefers('arm64')), [], 'the images are unknown');
  like(t, look(['c'], {}, prefers('arm64')), [/arm64 is ignored, the pod can only run on amd64/u]);
  const onArm = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
  like(t, look(['c'], onArm), [/the pod allows arm64, but its images can only run on amd64/u]);
  t.strictSame(look(['b', 'x'], onArm), []);
  like(t, look(['c'], requiring({ matchFields: [isIn('metadata.name', 'graviton')] })), [
    /the pod chooses node graviton \(arm64\), but its images can only run on amd64/u,
  ]);
  like(t, look(['c'], { nodeName: 'graviton' }), [
    /image c cannot run here: it has amd64, the node is arm64/u,
  ]);
  t.strictSame(look(['b'], { nodeName: 'graviton' }), []);
  const disabled = { labels: { 'arch.example/placement': 'disabled' } };
  t.strictSame(look(['c'], { nodeName: 'graviton' }, disabled), []);
});
