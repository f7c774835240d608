import t from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { patchGatedPod, ungatedPod } from '../../../src/placement/patch/patch.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { applied, failed, inputOf, place, podOf, type Known } from '../../support/placement-input.ts';

const summaryIn = ({ metadata }: Pod): string | undefined => metadata?.annotations?.[keys.summary];

const prefersArm: Partial<Policy> = {
  preferences: [{ weights: { arm64: 100, amd64: 1 }, origin: 'the configuration' }],
};

const rows: readonly (readonly [known: Known, policy: Partial<Policy>, summary: string | undefined])[] = [
  [{ app: 'amd64 arm64', log: 'amd64 arm64' }, {}, 'placed, requires amd64, arm64: all images can run there'],
  [
    { app: 'amd64 arm64' },
    prefersArm,
    'placed, requires amd64, arm64: all images can run there; prefers arm64, amd64',
  ],
  [
    { app: 'amd64 arm64' },
    { ...prefersArm, preferenceMode: 'hard' },
    'placed, requires arm64: all images can run there; prefers arm64',
  ],
  [{ app: '' }, prefersArm, 'unconstrained: no image constrains the architecture; prefers arm64, amd64'],
  [
    { app: 'arm64', log: failed('unauthorized', 'dial 10.0.0.7:443: secret') },
    {},
    'gated, requires arm64: log: unauthorized: the registry requires a valid credential: a pull secret, or a credential or plugin of the nodes (kubeletConfig)',
  ],
  [
    { app: failed('not-found') },
    { onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' },
    'fallback, requires amd64: app: not-found: the registry has no such image; check the name and the tag',
  ],
  [
    { app: 'amd64', log: 'arm64' },
    { onNoCommonArchitecture: 'pend' },
    'pending: no architecture can run all images: app has amd64; log has arm64',
  ],
  // Without additions, no record.
  [{ app: '' }, {}, undefined],
];

t.test('the summary has the decision and its reason in one line', async (t) => {
  for (const [known, policy, summary] of rows) {
    const input = inputOf(podOf(Object.keys(known)), known, policy);
    const { pod } = place(input);
    t.equal(summaryIn(pod), summary);
    t.strictSame(place({ ...input, pod }).patch, [], 'a second call changes nothing');
  }
});

t.test(
  'a typical summary has at most 140 characters with its key, so `kubectl describe` does not truncate it',
  async (t) => {
    const { pod } = place(inputOf(podOf(['a', 'b']), { a: 'amd64 arm64', b: 'amd64 arm64' }, prefersArm));
    t.ok(`${keys.summary}: ${summaryIn(pod)}`.length < 140);
  },
);

t.test('it is bounded and printable, whatever the names of images', async (t) => {
  const images = Array.from({ length: 40 }, (_, index) => `é\u202e\n${index}/${'x'.repeat(300)}`);
  const summary = summaryIn(place(inputOf(podOf(images))).pod) ?? '';
  t.match(summary, /^gated: é\?\?0\/x+\.\.\.: not inspected yet; /u);
  t.ok(Buffer.byteLength(summary) <= 256);
});

t.test('a copied summary is replaced or removed; a template has none', async (t) => {
  const copied = { annotations: { [keys.summary]: 'gated: not true', other: 'x' } };
  const placed = place(inputOf(podOf(['a'], {}, copied), { a: 'arm64' })).pod;
  t.equal(summaryIn(placed), 'placed, requires arm64: all images can run there');
  for (const pod of [podOf(['a'], {}, copied), podOf(['a'], { nodeName: 'node-1' }, copied)])
    t.strictSame(place(inputOf(pod, { a: '' })).pod.metadata?.annotations, { other: 'x' });
  const template = place(inputOf(podOf(['a']), { a: 'arm64' }, {}, { template: 'DaemonSet' })).pod;
  t.strictSame(Object.keys(template.metadata?.annotations ?? {}), [keys.decision]);
});

t.test('it changes with the removal of the gate', async (t) => {
  const gated = place(inputOf(podOf(['a']))).pod;
  t.equal(summaryIn(gated), 'gated: a: not inspected yet');
  const waiting = (known: Known, policy: Partial<Policy> = {}): Pod => {
    const { decision } = place(inputOf(gated, known, policy, { waiting: true }));
    return applied(gated, patchGatedPod(gated, decision));
  };
  t.equal(summaryIn(waiting({ a: 'arm64' })), 'placed, requires arm64: all images can run there');
  t.equal(summaryIn(waiting({ a: '' })), 'unconstrained: no image constrains the architecture');
  t.match(summaryIn(waiting({}, { onUnknownImage: 'fallback' })), /^allowed-unknown: a: not inspected yet$/);
  t.equal(summaryIn(applied(gated, ungatedPod(gated))), undefined, 'the gate alone is removed');
  const bare: Pod = { ...gated, metadata: {} };
  const { decision } = place(inputOf(bare, { a: 'arm64' }, {}, { waiting: true }));
  t.equal(summaryIn(applied(bare, patchGatedPod(bare, decision))), undefined, 'a gate without our record');
});
