import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { FakeClock } from '../../support/fake-clock.ts';
import { FactsFile } from '../../../src/images/memory/disk.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { bench, day, digestOf, facts, clockOfFacts, hour, minute, requestFor, settled } from '../support.ts';
import { until } from '../../support/until.ts';
import { recordingLog } from '../../support/captured.ts';

const [a, b, c] = [
  facts('docker.io/library/a:1'),
  facts('docker.io/library/b:1'),
  facts('docker.io/library/c:1'),
];

interface StateFile {
  readonly path: string;
  readonly time: FakeClock;
  readonly lines: readonly Record<string, unknown>[];
  readonly file: FactsFile;
}

function stateFile(path: string, maxBytes?: number): StateFile {
  const time = clockOfFacts();
  const { log, lines } = recordingLog();
  const file = new FactsFile({ path, log, clock: time, ...(maxBytes !== undefined && { maxBytes }) });
  return { path, time, lines, file };
}

async function write(path: string, all: readonly ImageFacts[], maxBytes?: number): Promise<void> {
  const { file } = stateFile(path, maxBytes);
  file.keep(() => all);
  file.changed();
  await file.close();
}

async function load(path: string, maxBytes?: number): Promise<{ images: string[]; warnings: string[] }> {
  const { file, lines } = stateFile(path, maxBytes);
  const images: string[] = [];
  const count = await file.load(({ image }) => images.push(image));
  t.equal(count, images.length);
  return { images, warnings: lines.map(({ msg }) => String(msg)) };
}

t.test('facts are read as they were written, least recently used first', async (t) => {
  const path = join(t.testdir(), 'facts');
  await write(path, [a, b, c]);
  t.same(await load(path), { images: [c.image, b.image, a.image], warnings: [] });
  const learned: ImageFacts[] = [];
  await stateFile(path).file.load((one) => learned.push(one));
  t.same(learned.reverse(), [a, b, c]);
  t.equal(statSync(path).mode & 0o777, 0o600);
  await write(path, []);
  t.same(await load(path), { images: [], warnings: [] });
  t.same(readdirSync(join(path, '..')), ['facts']);
});

t.test('3,000 facts are written and read', async (t) => {
  const path = join(t.testdir(), 'facts');
  const many = Array.from({ length: 3000 }, (_, index) => facts(`docker.io/library/app-${index}:1`));
  await write(path, many);
  t.equal((await load(path)).images.length, 3000);
});

t.test('a missing file is fine; a damaged one is ignored and logged once', async (t) => {
  const dir = t.testdir({ folder: {} });
  const path = join(dir, 'facts');
  t.same(await load(path), { images: [], warnings: [] });
  t.same(await load(join(dir, 'folder')), { images: [], warnings: ['the state file is ignored'] });

  await write(path, [a, b]);
  const text = readFileSync(path, 'utf8');
  const lines = text.split('\n');
  const [header = '', first = '', second = '', last = ''] = lines;
  const cases: [string, string | Buffer][] = [
    ['empty', ''],
    ['foreign', 'PNG\r\n'],
    ['another version', text.replace('"version":1', '"version":2')],
    ['only a header', `${header}\n`],
    ['header without its end', header],
    ['truncated', text.slice(0, -20)],
    ['without its last line', [header, first, second, ''].join('\n')],
    ['without its last line end', text.slice(0, -1)],
    ['a line less', [header, first, last, ''].join('\n')],
    ['a line twice', [header, first, first, second, last, ''].join('\n')],
    ['another architecture', text.replace('arm64', 'amd64')],
    ['something after the end', `${text}\n`],
    ['not UTF-8', Buffer.concat([Buffer.from(text), Buffer.from([0xff])])],
    ['zeros, as after a crash', Buffer.alloc(text.length)],
  ];
  for (const [name, content] of cases) {
    writeFileSync(path, content);
    t.same(await load(path), { images: [], warnings: ['the state file is ignored'] }, name);
  }
});

t.test('a file with a good checksum but malformed facts is ignored', async (t) => {
  const path = join(t.testdir(), 'facts');
  const bad = [{ ...a, platforms: 'all' }, 'text', null] as unknown as ImageFacts[];
  for (const one of bad) {
    await write(path, [b, one, c]);
    t.same(await load(path), { images: [], warnings: ['the state file is ignored'] });
  }
});

t.test('the most recently used facts are written up to the limit; larger files are not read', async (t) => {
  const path = join(t.testdir(), 'facts');
  const bytes = Buffer.byteLength(JSON.stringify(a)) + 1;
  await write(path, [a, b, c], 2 * bytes + 400);
  t.same((await load(path)).images, [b.image, a.image]);
  t.same(await load(path, 100), { images: [], warnings: ['the state file is ignored'] });
  t.ok(statSync(path).size <= 2 * bytes + 400);
});

t.test('changes of half a minute are written at once', async (t) => {
  const { file, path, time } = stateFile(join(t.testdir(), 'facts'));
  let reads = 0;
  file.keep(() => {
    reads += 1;
    return [a];
  });
  for (let index = 0; index < 100; index += 1) file.changed();
  t.equal(time.pending, 1);
  await time.advance(29_999);
  t.equal(reads, 0);
  await time.advance(1);
  await until(() => existsSync(path));
  t.equal(reads, 1);
  t.equal(time.pending, 0, 'no further change');
  await file.close();
  t.equal(reads, 1, 'close writes nothing');
});

t.test('a large file is written less often', async (t) => {
  const { file, path, time } = stateFile(join(t.testdir(), 'facts'));
  file.keep(() => Array.from({ length: 20_000 }, () => a));
  file.changed();
  await time.advance(30_000);
  await until(() => existsSync(path));
  await until(() => {
    file.changed();
    return time.pending === 1;
  });
  const { size } = statSync(path);
  await time.advance(size / 100 - 1000);
  t.equal(time.pending, 1, 'too early');
  await time.advance(1000);
  t.equal(time.pending, 0);
  await file.close();
});

t.test('a change during a write is written afterwards', async (t) => {
  const { file, path, time } = stateFile(join(t.testdir(), 'facts'));
  let all = [a];
  file.keep(() => all);
  file.changed();
  await time.advance(30_000);
  all = [a, b];
  file.changed();
  await until(() => time.pending === 1);
  t.same((await load(path)).images, [a.image]);
  await file.close();
  t.same((await load(path)).images, [b.image, a.image]);
  t.equal(time.pending, 0);
});

t.test('a failed write is logged once and retried after five minutes', async (t) => {
  const dir = t.testdir();
  const path = join(dir, 'state', 'facts');
  const { file, time, lines } = stateFile(path);
  file.keep(() => [a]);
  file.changed();
  await time.advance(30_000);
  await until(() => time.pending === 1);
  t.match(lines, [{ msg: 'the state file cannot be written; going on from memory' }]);
  await time.advance(299_999);
  await settled();
  t.equal(lines.length, 1);
  await time.advance(1);
  await until(() => time.pending === 1);
  t.equal(lines.length, 1, 'logged once');
  mkdirSync(join(dir, 'state'));
  await time.advance(300_000);
  await until(() => existsSync(path));
  await file.close();
  t.match(lines[1], { msg: 'the state file can be written again' });
  t.same((await load(path)).images, [a.image]);
});

t.test('on a full disk the old file stays, and the partial new one is removed', async (t) => {
  const path = join(t.testdir(), 'facts');
  await write(path, [a]);
  const broken = {
    *[Symbol.iterator](): Generator<ImageFacts> {
      yield b;
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    },
  };
  const { file, lines } = stateFile(path);
  file.keep(() => broken);
  file.changed();
  await file.close();
  t.match(lines, [{ msg: 'the state file cannot be written; going on from memory' }]);
  t.same((await load(path)).images, [a.image]);
  t.same(readdirSync(join(path, '..')), ['facts']);
});

t.test('a partial file of an earlier crash is replaced', async (t) => {
  const path = join(t.testdir(), 'facts');
  writeFileSync(`${path}.new`, 'half a file', { mode: 0o666 });
  chmodSync(`${path}.new`, 0o666);
  await write(path, [a]);
  t.same((await load(path)).images, [a.image]);
  t.equal(statSync(path).mode & 0o777, 0o600);
});

t.test('shared facts survive a restart with their age', async (t) => {
  const path = join(t.testdir(), 'facts');
  const before = bench({ file: stateFile(path).file });
  await before.lookUp(requestFor('nginx'), facts('nginx'));
  await before.lookUp(requestFor(`redis@${digestOf('r')}`), facts(`redis@${digestOf('r')}`));
  await before.lookUp(
    requestFor('corp.example/app', { credentials: ['x'] }),
    facts('corp.example/app', { credentialSource: 'pull-secret' }),
  );
  await before.memory.close();
  t.notMatch(readFileSync(path, 'utf8'), /corp\.example|password|pull-secret/);

  const after = bench({ file: stateFile(path).file });
  await after.time.advance(5 * minute);
  t.equal(await stateFile(path).file.load((one) => after.memory.learn(one)), 2);
  t.match(after.memory.recall(requestFor('nginx')), { freshUntil: '2026-11-21T12:15:00.000Z', stale: false });
  await after.time.advance(10 * minute);
  t.match(after.memory.recall(requestFor('nginx')), { stale: false });
  t.equal(after.inspector.lookups.length, 1, 'due 15 minutes after they were confirmed');
  t.match(after.memory.recall(requestFor(`redis@${digestOf('r')}`)), { stale: false });

  const muchLater = bench();
  muchLater.time.setWall(muchLater.time.now() + 8 * day);
  await stateFile(path).file.load((one) => muchLater.memory.learn(one));
  t.equal(muchLater.memory.recall(requestFor('nginx')), undefined);
  t.ok(muchLater.memory.lastKnown(requestFor('nginx')));

  const clockSetBack = bench();
  clockSetBack.time.setWall(clockSetBack.time.now() - 20 * day);
  await stateFile(path).file.load((one) => clockSetBack.memory.learn(one));
  t.ok(clockSetBack.memory.recall(requestFor('nginx')));
  await clockSetBack.time.advance(hour);
  clockSetBack.memory.recall(requestFor('nginx'));
  t.equal(clockSetBack.inspector.lookups.length, 1, 'due as if confirmed at the restart');
});

t.test('restored facts are not written again', async (t) => {
  const path = join(t.testdir(), 'facts');
  await write(path, [a]);
  const { file, time } = stateFile(path);
  const { memory, lookUp } = bench({ file });
  await file.load((one) => memory.learn(one));
  t.equal(time.pending, 0);
  await lookUp(requestFor('new'), facts('new'));
  t.equal(time.pending, 1);
  rmSync(path);
  await memory.close();
  t.equal((await load(path)).images.length, 2);
});
