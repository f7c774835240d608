/**
 * Which containers may have failed because of their node's CPU, and what their output says about it. The texts of
 * Go and of the dynamic linker, with their exit codes, are from qemu-x86_64-static 7.2 (`-cpu Nehalem`: v2,
 * `-cpu Haswell`: v3, `-cpu qemu64`: v1), which ran programs of Go 1.26 (`GOAMD64=v3`) and of gcc on Debian 12
 * (`-march=x86-64-v3 -Wl,-z,x86-64-v3`, glibc 2.36). Debian's glibc is not built for a level, so the text of
 * glibc itself is from its sysdeps/x86/dl-get-cpu-features.c.
 */
import t from 'tap';
import type { RunningContainer, RunningPod } from '../../../src/controller/state/cached.ts';
import { failureIn, suspectsOf, type MissedLevel } from '../../../src/controller/pods/suspects.ts';
import { withUserMs } from '../../support/cpu-time.ts';
import { runningPod } from '../leader.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const pulled = `registry.example/shop/other@${digest}`;

function pod(container: Partial<RunningContainer>, more: Partial<RunningPod> = {}): RunningPod {
  const crashing: RunningContainer = {
    name: 'web',
    image: 'registry.example/shop/other:1',
    imageID: pulled,
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

const suspect = { container: 'web', image: 'shop/web:1', digest, pulled, previous: true };
const execFormat = 'exec /app: exec format error\n';

t.test('which containers are checked', async (t) => {
  const first = { restartCount: 0, reason: 'Error' };
  const cases: [name: string, pod: RunningPod, expected?: object][] = [
    ['crash loop, runc 1.2', pod({}), suspect],
    ['crash loop, runc 1.1', pod({ exitCode: 1 }), suspect],
    [
      'with the image of the spec',
      pod({}, { images: [] }),
      { ...suspect, image: 'registry.example/shop/other:1' },
    ],
    [
      'an exec format error in the message, at the first crash',
      pod({ ...first, message: execFormat }),
      { ...suspect, failure: { kind: 'exec-format' }, previous: false },
    ],
    ['a pod that has failed', pod(first, { phase: 'Failed' }), { ...suspect, previous: false }],
    ['restarted, ended again', pod({ restartCount: 1, reason: 'Error' }), { ...suspect, previous: false }],
    ['first crash', pod(first)],
    ['another exit code', pod({ exitCode: 128 })],
    ['never ended', pod({ exitCode: undefined })],
    ['runs', pod({ ready: true })],
    ['is being deleted', pod({}, { deleting: true })],
    ['nothing was pulled', pod({ imageID: '' })],
    ['an ID without a digest of a manifest', pod({ imageID: digest })],
  ];
  for (const [name, given, expected] of cases)
    t.strictSame(suspectsOf(given), expected === undefined ? [] : [expected], name);
});

const go = (level: number): string =>
  `This program can only be run on AMD64 processors with v${level} microarchitecture support.\n`;
const glibc = (level: number): string => `Fatal glibc error: CPU does not support x86-64-v${level}\n`;
const library = '/tmp/levels/p/libl3.so: CPU ISA level is lower than required\n';

const real: readonly [text: string, exitCode: number, missed: MissedLevel][] = [
  [go(2), 1, 2],
  [go(3), 1, 3],
  [go(4), 1, 4],
  [glibc(2), 127, 2],
  [glibc(3), 127, 3],
  ['./d-v3: CPU ISA level is lower than required\n', 127, 'higher'],
  // A library that the program is linked with.
  [library, 127, 'higher'],
  // A library that the program loads later.
  [
    `Traceback (most recent call last):\n    self._handle = _dlopen(self._name, mode)\n                   ^^^^^^^\nOSError: ${library}`,
    1,
    'higher',
  ],
];

t.test('a missing level is read from logs and termination messages', async (t) => {
  for (const [text, exitCode, missed] of real) {
    const failure = { kind: 'cpu-level', missed };
    const script = `starting\n${text.replaceAll('\n', '\r\n')}\n`;
    t.strictSame(failureIn(script), failure, `${text} from a script`);
    t.equal(suspectsOf(pod({ exitCode })).length, 1, 'its log is read');
    const [found] = suspectsOf(pod({ exitCode, message: text }));
    t.strictSame(found?.failure, failure, 'a termination message needs no log');
  }
  t.strictSame(failureIn(glibc(2) + go(4)), { kind: 'cpu-level', missed: 4 }, 'the last line counts');
});

t.test('which texts are exec format errors', async (t) => {
  const cases: [text: string | undefined, says: boolean][] = [
    [execFormat, true],
    ['exec /app: exec format error', true],
    ['exec /usr/local/bin/docker-entrypoint.sh: exec format error\r\n', true],
    ['exec format error', false],
    [`starting\n${execFormat}`, false],
    [`${execFormat}and more\n`, false],
    ['exec /app: no such file or directory\n', false],
    [`sh: ${execFormat}`, false],
    ['', false],
    [undefined, false],
  ];
  for (const [text, says] of cases)
    t.strictSame(failureIn(text), says ? { kind: 'exec-format' } : undefined, JSON.stringify(text));
});

t.test('attack: any output of a container gives a level from 2 to 4, or none', async (t) => {
  const texts = [
    '\n\n',
    glibc(1),
    glibc(5),
    glibc(33),
    go(0),
    `I ${go(3)}`,
    `${glibc(3).trim()}; rm -rf /\n`,
    'Fatal glibc error: CPU does not support x86-64-v3 or so',
    'CPU ISA level is lower than required, they said',
    'CPU does not support x86-64-v3',
    '\u0000'.repeat(8192),
    ': CPU ISA level'.repeat(500),
    '\n'.repeat(8192),
    ' '.repeat(8192),
    `${' '.repeat(8000)}x`,
  ];
  for (const text of texts) {
    const [failure, ms] = await withUserMs(() => failureIn(text));
    t.equal(failure, undefined, JSON.stringify(text.slice(0, 80)));
    t.ok(ms < 1000, `${ms} ms`);
  }
});
