import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { FactsFile } from '../../../src/images/cache/facts-file.ts';
import { type ImageFacts, ofAnyAge } from '../../../src/images/facts/facts.ts';
import { recordingLog } from '../../support/captured.ts';
import { factsOf, requestFor } from '../../support/facts.ts';
import { until } from '../../support/until.ts';
import { bench, clockOfFacts, day, hour, minute } from '../support.ts';

const [a, b, c] = [factsOf('a.example/a:1'), factsOf('a.example/b:1'), factsOf('a.example/c:1')];

function factsFile(path: string, maxBytes?: number) {
  const clock = clockOfFacts();
  const { log, lines } = recordingLog();
  const file = new FactsFile({ path, log, clock, ...(maxBytes !== undefined && { maxBytes }) });
  return { file, clock, messages: () => lines.map(({ msg }) => msg) };
}

async function write(path: string, all: readonly ImageFacts[], maxBytes?: number): Promise<void> {
  const { file } = factsFile(path, maxBytes);
  file.keep(() => all);
  file.changed();
  await file.close();
}

async function load(path: string, maxBytes?: number) {
  const { file, messages } = factsFile(path, maxBytes);
  const learned: ImageFacts[] = [];
  const into = { learn: (facts: ImageFacts) => learned.push(facts), clear: () => learned.splice(0) };
  t.equal(await file.load(into), learned.length);
  return { learned, messages: messages() };
}

t.test('facts are read as they were written; others of the machine cannot read them', async (t) => {
  const path = join(t.testdir(), 'facts');
  await write(path, [a, b, c]);
  t.strictSame(await load(path), { learned: [a, b, c], messages: [] });
  t.equal(statSync(path).mode & 0o777, 0o600);
  const many = Array.from({ length: 3000 }, (_, index) => factsOf(`app-${index}`));
  await write(path, many);
  t.strictSame((await load(path)).learned, many);
});

t.test('a missing file is fine; any file that cannot be read as facts is ignored as a whole', async (t) => {
  const path = join(t.testdir(), 'facts');
  t.strictSame(await load(path), { learned: [], messages: [] });
  const line = JSON.stringify(a);
  const { confirmedAt: _, ...undated } = a;
  for (const text of [
    '{',
    `${line}\n{"image":`,
    `${line}\n[]\n`,
    `${line}\n${JSON.stringify(undated)}\n`,
    '\0\0\0',
    // An attacker with the host path: lines that need much memory or a deep stack.
    `${line}\n${line}${' '.repeat(200_000)}\n`,
    `${line}\n${'['.repeat(100_000)}\n`,
  ]) {
    writeFileSync(path, text);
    t.strictSame(await load(path), { learned: [], messages: ['the state file is ignored'] }, text.slice(-20));
  }
  await write(path, [a]);
  t.strictSame((await load(path)).learned, [a], 'it is replaced');
});

t.test('facts are taken one after the other; those before a bad line are forgotten', async (t) => {
  const path = join(t.testdir(), 'facts');
  writeFileSync(path, `${JSON.stringify(a)}\n{`);
  const { cache } = bench();
  const sizes: number[] = [];
  const clear = () => {
    sizes.push(cache.size);
    cache.clear();
  };
  t.equal(await factsFile(path).file.load({ learn: (facts) => cache.learn(facts), clear }), 0);
  t.strictSame([...sizes, cache.size, cache.bytes], [1, 0, 0]);
});

t.test('the first facts are written up to the limit; larger files are not read', async (t) => {
  const path = join(t.testdir(), 'facts');
  const limit = JSON.stringify(a).length * 2 + 10;
  await write(path, [a, b, c], limit);
  t.strictSame((await load(path)).learned, [a, b]);
  t.strictSame((await load(path, 100)).messages, ['the state file is ignored']);
});

t.test(
  'changes of a minute are written at once; a failed write is logged, and the next change writes',
  async (t) => {
    const dir = t.testdir();
    const path = join(dir, 'state', 'facts');
    const { file, clock, messages } = factsFile(path);
    let all = [a];
    file.keep(() => all);
    file.changed();
    await clock.advance(minute);
    await until(() => messages().length === 1);
    t.strictSame(messages(), ['the state file cannot be written']);
    mkdirSync(join(dir, 'state'));
    file.changed();
    file.changed();
    t.equal(clock.pending, 1);
    await clock.advance(minute - 1);
    t.notOk(existsSync(path));
    await clock.advance(1);
    all = [a, b];
    file.changed();
    await file.close();
    t.strictSame((await load(path)).learned, [a, b], 'a change during a write is written too');
    t.equal(clock.pending, 0);
  },
);

t.test('on a full disk the old file stays, and the partial new one is removed', async (t) => {
  const path = join(t.testdir(), 'facts');
  await write(path, [a]);
  const { file, messages } = factsFile(path);
  file.keep(function* () {
    yield b;
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
  file.changed();
  await file.close();
  t.strictSame(messages(), ['the state file cannot be written']);
  t.strictSame((await load(path)).learned, [a]);
  t.strictSame(readdirSync(join(path, '..')), ['facts']);
});

t.test('pipes and links of a container with the host path are not followed', async (t) => {
  const dir = t.testdir({ victim: 'intact' });
  const path = join(dir, 'facts');
  execFileSync('mkfifo', [path]);
  t.strictSame((await load(path)).messages, ['the state file is ignored']);
  symlinkSync(join(dir, 'victim'), `${path}.${process.pid}.new`);
  await write(path, [a]);
  t.equal(readFileSync(join(dir, 'victim'), 'utf8'), 'intact');
  t.strictSame((await load(path)).learned, [a]);
});

t.test('the cache gives its file shared facts only; their age is by the wall clock', async (t) => {
  const path = join(t.testdir(), 'facts');
  const before = bench({ file: factsFile(path).file });
  await before.lookUp(requestFor('nginx'), factsOf('nginx'));
  const secret = factsOf('corp.example/app', { credentialSource: 'pull-secret' });
  await before.lookUp(requestFor('corp.example/app', { credentials: ['x'] }), secret);
  await before.cache.close();
  t.notMatch(readFileSync(path, 'utf8'), /corp\.example|password|pull-secret/);

  for (const [shiftMs, isKnown] of [
    [8 * day, false],
    [-20 * day, true],
  ] as const) {
    const later = bench();
    later.clock.setWall(later.clock.now() + shiftMs);
    const { file, clock } = factsFile(path);
    t.equal(await file.load(later.cache), 1);
    t.equal(clock.pending, 0, 'loading writes nothing');
    t.equal(later.cache.peek(requestFor('nginx')) !== undefined, isKnown);
    t.ok(later.cache.peek(ofAnyAge(requestFor('nginx'))));
    await later.clock.advance(hour);
    later.cache.peek(requestFor('nginx'));
    t.equal(later.source.lookups.length, isKnown ? 1 : 0, 'a date ahead of the clock counts as now');
  }
});
