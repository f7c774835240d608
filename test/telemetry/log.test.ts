import t from 'tap';
import { createLog, type LogOptions } from '../../src/telemetry/log.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { like } from '../support/like.ts';

function capture(options: LogOptions = {}) {
  const lines: string[] = [];
  const log = createLog({ ...options, destination: { write: (line: string) => void lines.push(line) } });
  return { log, lines };
}

t.test('an entry is one JSON line with level and time', async (t) => {
  const { log, lines } = capture();
  log.child({ part: 'webhook' }).info({ uid: 'x' }, 'a line\nwith a break');
  t.equal(lines.length, 1);
  t.equal(lines[0]?.trim().includes('\n'), false);
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  like(t, line, { level: 'info', part: 'webhook', uid: 'x', msg: 'a line\nwith a break' });
  t.match(line['time'], /^\d{4}-\d\d-\d\dT.*Z$/);
  t.notOk('pid' in line);
});

t.test('entries below the level are not written', async (t) => {
  const { log, lines } = capture();
  log.debug('not yet');
  log.level = 'debug';
  log.debug('now');
  log.level = 'silent';
  log.error('no more');
  t.equal(lines.length, 1);
  t.equal(capture({ level: 'warn' }).log.isLevelEnabled('info'), false);
});

t.test('children follow the level, and set it', async (t) => {
  const { log, lines } = capture({ level: 'warn' });
  const child = log.child({ feature: 'gates' });
  const grandchild = child.child({ part: 'queue' });
  t.equal(log.level, 'warn');
  for (const each of [child, grandchild]) each.info('not yet');
  log.level = 'debug';
  for (const each of [child, grandchild]) each.debug('now');
  t.equal(lines.length, 2);
  grandchild.level = 'error';
  for (const each of [log, child, grandchild]) {
    each.warn('no more');
    t.equal(each.level, 'error');
  }
  t.equal(lines.length, 2);
});

t.test('no line contains a secret', async (t) => {
  const { log, lines } = capture();
  const password = 'pass"word-of-somebody';
  const holder = secret(password);
  log.info({ holder, password, url: `https://u:${encodeURIComponent(password)}@host/` }, `got ${password}`);
  log.child({ echo: password }).error({ err: new Error(`the server said ${password}`) }, 'failed');
  const basic = Buffer.from(`user:${password}`).toString('base64');
  log.warn({ header: `Basic ${basic}` }, 'header');
  t.equal(lines.length, 3);
  for (const line of lines) {
    t.notOk(line.includes('word-of-somebody'), line);
    t.notOk(line.includes(basic.slice(8, 24)), line);
    t.doesNotThrow(() => JSON.parse(line) as unknown);
  }
});

t.test('a password that looks like a part of a line changes only values', async (t) => {
  const { log, lines } = capture();
  const now = new Date().toISOString();
  const passwords = [
    '"level":"warn"',
    '","msg":"',
    'failed"}\n',
    '"duration":123456',
    '123456',
    'problem',
    now.slice(0, 10),
    // In the line, an escape precedes it.
    'nabcdef',
  ];
  for (const password of passwords) secret(password, 'others');
  const fields = { problem: 'a problem\nabcdef', duration: 123456, uid: 'x' };
  log.warn(fields, 'failed');
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  like(t, line, { level: 'warn', problem: 'a [secret]\nabcdef', duration: 123456, uid: 'x', msg: 'failed' });
  t.ok(String(line['time']).startsWith(now.slice(0, 10)));
  t.ok(lines[0]?.endsWith('"}\n'));
});

t.test('a secret in a nested document is not written', async (t) => {
  const { log, lines } = capture();
  secret('pass"word-in-a-document');
  log.info({ body: JSON.stringify({ password: 'pass"word-in-a-document' }) }, 'received');
  like(t, JSON.parse(lines[0] ?? ''), { body: '{"password":"[secret]"}' });
});

t.test('an error is written with its fields and stack', async (t) => {
  const { log, lines } = capture();
  log.error({ err: Object.assign(new Error('broken'), { code: 'unavailable' }) }, 'failed');
  const { err } = JSON.parse(lines[0] ?? '') as { err: Record<string, unknown> };
  like(t, err, { type: 'Error', message: 'broken', code: 'unavailable' });
  t.match(err['stack'], /log\.test\.ts/);
});
