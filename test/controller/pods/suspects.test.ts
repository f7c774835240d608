import t from 'tap';
import type { RunningContainer, RunningPod } from '../../../src/controller/state/cached.ts';
import { runningPod } from '../leader.ts';
import { isExecFormatError, suspectsOf } from '../../../src/controller/pods/suspects.ts';

const digest = `sha256:${'a'.repeat(64)}`;

function pod(container: Partial<RunningContainer>, more: Partial<RunningPod> = {}): RunningPod {
  const crashing: RunningContainer = {
    name: 'web',
    image: 'registry.example/shop/other:1',
    imageID: `registry.example/shop/other@${digest}`,
    ready: false,
    running: false,
    restartCount: 2,
    reason: 'CrashLoopBackOff',
    exitCode: 255,
    message: undefined,
  };
  const images = [{ image: 'shop/web:1', pullPolicy: undefined, usedBy: 'web' }];
  return runningPod({ ready: false, images, containers: [{ ...crashing, ...container }], ...more });
}

const pulled = `registry.example/shop/other@${digest}`;
const suspect = { container: 'web', image: 'shop/web:1', digest, pulled, previous: true };

t.test('which containers are checked', async (t) => {
  const text = 'exec /app: exec format error\n';
  const cases: [name: string, pod: RunningPod, expected: object | undefined][] = [
    ['crash loop, runc 1.2', pod({}), suspect],
    ['crash loop, runc 1.1', pod({ exitCode: 1 }), suspect],
    [
      'with the image of the spec',
      pod({}, { images: [] }),
      { ...suspect, image: 'registry.example/shop/other:1' },
    ],
    [
      'an exec format error in the message, at the first crash',
      pod({ restartCount: 0, reason: 'Error', message: text }),
      { ...suspect, failure: { kind: 'exec-format' }, previous: false },
    ],
    [
      'a pod that has failed',
      pod({ restartCount: 0, reason: 'Error' }, { phase: 'Failed' }),
      { ...suspect, previous: false },
    ],
    ['restarted, ended again', pod({ restartCount: 1, reason: 'Error' }), { ...suspect, previous: false }],
    ['first crash', pod({ restartCount: 0, reason: 'Error' }), undefined],
    ['another exit code', pod({ exitCode: 128 }), undefined],
    ['never ended', pod({ exitCode: undefined }), undefined],
    ['runs', pod({ ready: true }), undefined],
    ['is being deleted', pod({}, { deleting: true }), undefined],
    ['nothing was pulled', pod({ imageID: '' }), undefined],
    ['an ID without a digest of a manifest', pod({ imageID: digest }), undefined],
  ];
  for (const [name, given, expected] of cases) {
    t.strictSame(suspectsOf(given), expected === undefined ? [] : [expected], name);
  }
});

t.test('which log texts are exec format errors', async (t) => {
  const cases: [text: string | undefined, says: boolean][] = [
    ['exec /app: exec format error\n', true],
    ['exec /app: exec format error', true],
    ['exec /usr/local/bin/docker-entrypoint.sh: exec format error\r\n', true],
    ['exec format error', false],
    ['starting\nexec /app: exec format error\n', false],
    ['exec /app: exec format error\nand more\n', false],
    ['exec /app: no such file or directory\n', false],
    ['sh: exec /app: exec format error\n', false],
    ['', false],
    [undefined, false],
  ];
  for (const [text, says] of cases) t.equal(isExecFormatError(text), says, JSON.stringify(text));
});
