/**
 * What programs print on a CPU below their level. The texts of Go and of the dynamic linker, with their exit
 * codes, are from qemu-x86_64-static 7.2 (`-cpu Nehalem`: v2, `-cpu Haswell`: v3, `-cpu qemu64`: v1), which
 * ran programs of Go 1.26 (`GOAMD64=v3`) and of gcc on Debian 12 (`-march=x86-64-v3 -Wl,-z,x86-64-v3`, glibc
 * 2.36). Debian's glibc is not built for a level, so the text of glibc itself is from its
 * sysdeps/x86/dl-get-cpu-features.c.
 */
import t from 'tap';
import { missedLevelIn, suspectsOf, type MissedLevel } from '../../../src/controller/pods/suspects.ts';
import { withUserMs } from '../../support/cpu-time.ts';
import { runningPod } from '../leader.ts';

const go = (level: number): string =>
  `This program can only be run on AMD64 processors with v${level} microarchitecture support.\n`;
const glibc = (level: number): string => `Fatal glibc error: CPU does not support x86-64-v${level}\n`;
const linker = './d-v3: CPU ISA level is lower than required\n';

const real: readonly [text: string, exitCode: number, missed: MissedLevel][] = [
  [go(2), 1, 2],
  [go(3), 1, 3],
  [go(4), 1, 4],
  [glibc(2), 127, 2],
  [glibc(3), 127, 3],
  [linker, 127, 'higher'],
  // A library that the program is linked with.
  ['/tmp/levels/p/libl3.so: CPU ISA level is lower than required\n', 127, 'higher'],
  // A library that the program loads later.
  [
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n' +
      '  File "/usr/lib/python3.11/ctypes/__init__.py", line 376, in __init__\n' +
      '    self._handle = _dlopen(self._name, mode)\n                   ^^^^^^^^^^^^^^^^^^^^^^^^^\n' +
      'OSError: /tmp/levels/p/libl3.so: CPU ISA level is lower than required\n',
    1,
    'higher',
  ],
];

t.test('the level is read from logs and termination messages', async (t) => {
  for (const [text, exitCode, missed] of real) {
    t.equal(missedLevelIn(text), missed, text);
    t.equal(missedLevelIn(`starting\n${text.replaceAll('\n', '\r\n')}\n`), missed, 'from a script');
    const container = {
      name: 'web',
      image: 'web:1',
      imageID: `registry.example/web@sha256:${'a'.repeat(64)}`,
      ready: false,
      running: false,
      restartCount: 2,
      reason: 'CrashLoopBackOff',
      exitCode,
      message: undefined,
    };
    t.equal(suspectsOf(runningPod({ ready: false, containers: [container] })).length, 1, 'its log is read');
    const suspects = suspectsOf(runningPod({ ready: false, containers: [{ ...container, message: text }] }));
    t.strictSame(suspects[0]?.failure, { kind: 'cpu-level', missed }, 'a termination message needs no log');
  }
  t.equal(missedLevelIn(glibc(2) + go(4)), 4, 'the last line counts');
});

t.test('attack: any output of a container gives a level from 2 to 4, or none', async (t) => {
  const texts = [
    '',
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
    'illegal instruction',
    '\u0000'.repeat(8192),
  ];
  for (const text of texts) t.equal(missedLevelIn(text), undefined, JSON.stringify(text.slice(0, 80)));
  for (const text of [
    ': CPU ISA level'.repeat(500),
    '\n'.repeat(8192),
    ' '.repeat(8192),
    `${' '.repeat(8000)}x`,
  ]) {
    const [level, ms] = await withUserMs(() => missedLevelIn(text));
    t.equal(level, undefined);
    t.ok(ms < 1000, `${ms} ms`);
  }
});
