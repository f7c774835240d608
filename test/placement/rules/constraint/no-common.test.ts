import { test } from 'tap';
import { decide } from '../../../../src/placement/decide.ts';
import { archIn, inputOf, place, podOf, requiring, termOf } from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const known = { a: 'amd64', b: 'arm64', c: 'windows/amd64' };

test('deny names each image and its architectures', async (t) => {
  const { decision, patch } = place(inputOf(podOf(['a', 'b', 'c']), known));
  t.equal(decision.outcome, 'denied');
  t.strictSame(decision.required, []);
  t.equal(
    decision.message,
    'no architecture can run all images: a has amd64; b has arm64; c has no platform for linux, only windows/amd64',
  );
  t.strictSame(decision.warnings, [], 'the refusal has the message');
  t.strictSame(patch, []);
});

test('the message names the system of a pod for Windows', async (t) => {
  const pod = podOf(['a'], { nodeSelector: { 'kubernetes.io/os': 'windows' } });
  t.equal(
    decide(inputOf(pod, known)).message,
    'no architecture can run all images on windows: a has no platform for windows, only linux/amd64',
  );
});

test('the message names the schedulable architectures if they are a limit', async (t) => {
  const { message } = decide(inputOf(podOf(['a']), known, { schedulableArchitectures: ['arm64', 's390x'] }));
  t.equal(message, 'no architecture of the schedulable ones (arm64, s390x) can run all images: a has amd64');
});

test('`pend` requires an architecture that no node has, with a message', async (t) => {
  const policy = { onNoCommonArchitecture: 'pend' as const };
  const { decision, pod } = place(inputOf(podOf(['a', 'b']), known, policy));
  t.equal(decision.outcome, 'pending');
  t.match(decision.message, /a has amd64; b has arm64/u);
  like(t, decision.warnings, [/no architecture can run all images/u]);
  t.strictSame(pod.spec.affinity, requiring(termOf(archIn('no-common-architecture'))).affinity);
});

test('`allow` admits the pod with a warning', async (t) => {
  const { decision, patch } = place(inputOf(podOf(['a', 'b']), known, { onNoCommonArchitecture: 'allow' }));
  t.equal(decision.outcome, 'unconstrained');
  t.equal(decision.required, undefined);
  like(t, decision.warnings, [/a has amd64; b has arm64/u]);
  t.strictSame(patch, []);
});

test('a message about many images with long names is bounded and printable', async (t) => {
  const images = Array.from(
    { length: 3000 },
    (_, index) => `registry.example/\u001b[31m\u202e${'x'.repeat(200)}-${index}:1`,
  );
  const decision = decide(
    inputOf(
      podOf(images),
      {},
      {},
      {
        facts: (image) =>
          inputOf(podOf([]), { [image]: image.endsWith('1:1') ? 'amd64' : 'arm64' }).facts(image),
      },
    ),
  );
  t.equal(decision.outcome, 'denied');
  t.ok(Buffer.byteLength(decision.message ?? '') < 2400);
  t.match(decision.message, /; and [0-9]+ more$/u);
  t.notMatch(decision.message, /\p{C}/u);
});
