import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { startServer } from '../../src/serving/server.ts';
import { holdTls, loadCaFile, loadTlsMaterial, openTlsFiles } from '../../src/serving/tls-files.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { createCa } from '../support/certificates.ts';
import { keepAlive, send, tlsDirectory, writeTls } from './support.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

const ca = await createCa();
const pollMs = 50;

test('errors name the file and the remedy', async (t) => {
  const pair = await ca.issue({ cn: 'server' });
  const other = await ca.issue({ cn: 'server' });
  const cases: [name: string, content: string | Buffer | undefined, message: RegExp][] = [
    ['tls.crt', undefined, /tls\.crt.*no such file.*kubernetes\.io\/tls/],
    ['tls.key', undefined, /tls\.key.*no such file/],
    ['ca.crt', undefined, /ca\.crt.*no such file/],
    ['tls.crt', 'garbage', /tls\.crt is not a certificate in PEM/],
    ['tls.crt', pair.cert.slice(0, 200), /tls\.crt is not/],
    ['tls.key', pair.key.slice(0, 60), /tls\.key is not an unencrypted/],
    ['tls.key', '', /tls\.key is not an unencrypted/],
    ['ca.crt', 'garbage', /ca\.crt is not certificates/],
    ['ca.crt', Buffer.from([0xff, 0xfe]), /ca\.crt.*not UTF-8/],
    ['tls.key', other.key, /tls\.key is not the key of .*tls\.crt/],
    ['tls.crt', Buffer.alloc(600_000, 'a'), /tls\.crt.*larger than 524288/],
  ];
  for (const [name, content, message] of cases) {
    const dir = await tlsDirectory(t, pair, ca.cert);
    await rm(join(dir, name));
    if (content !== undefined) await writeFile(join(dir, name), content);
    const error = { name: 'ServingError', message };
    await t.rejects(loadTlsMaterial(dir, true), error, message.source);
    await t.rejects(openTlsFiles({ dir, use: 'client', ca: true, log: recordingLog().log }), { message });
  }
});

test('ca.crt is read only if required; material is awaited only until there is some', async (t) => {
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server' }));
  const material = await loadTlsMaterial(dir, false);
  t.equal(material.ca, undefined);
  await t.rejects(loadCaFile(join(dir, 'tls.key')), { message: /tls\.key is not certificates in PEM/ });
  const held = holdTls('a Secret', { use: 'server', log: recordingLog().log });
  await t.rejects(held.ready(AbortSignal.abort()), { name: 'AbortError' }, 'there is none yet');
  held.take(material);
  await held.ready(AbortSignal.abort());
});

test('a client reloads its files', async (t) => {
  const first = await ca.issue({ cn: 'one', client: true });
  const second = await ca.issue({ cn: 'two', client: true });
  const dir = await tlsDirectory(t, first, ca.cert);
  const files = await openTlsFiles({ dir, use: 'client', ca: true, log: recordingLog().log, pollMs });
  t.teardown(() => files.close());
  let changes = 0;
  files.onChange(() => (changes += 1));
  t.equal(files.current().cert, first.cert);
  t.equal(reveal(files.current().key), first.key);
  t.equal(files.current().ca, ca.cert);

  await writeTls(dir, second);
  await until(() => files.current().cert === second.cert, 'the new pair');
  t.equal(reveal(files.current().key), second.key, 'never a mixed pair');
  files.take(files.current());
  t.equal(changes, 1, 'the same pair is no change');
});

test('if the new pair is broken, the old one stays, with one log line', async (t) => {
  const pair = await ca.issue({ cn: 'server', notAfter: new Date('2090-01-02T03:04:05Z') });
  const other = await ca.issue({ cn: 'server' });
  const dir = await tlsDirectory(t, pair);
  const { log, lines } = recordingLog();
  const metrics = createMetrics();
  const files = await openTlsFiles({ dir, use: 'server', ca: false, log, metrics, pollMs });
  t.teardown(() => files.close());

  await writeFile(join(dir, 'tls.key'), other.key);
  await until(() => lines.length > 0, 'it is noticed');
  t.equal(files.current().cert, pair.cert);
  const text = await metrics.render();
  t.match(
    text,
    `archwright_tls_certificate_expiry_timestamp_seconds{use="server"} ${Date.UTC(2090, 0, 2, 3, 4, 5) / 1000}`,
  );

  await writeTls(dir, other);
  await until(() => files.current().cert === other.cert, 'the whole pair');
  const errors = lines.filter(({ level }) => level === 'error');
  like(t, errors, [{ msg: /last good one stays in force/, problem: /not the key of/ }]);
  t.equal(errors.length, 1, 'logged once');
});

test('an expired certificate is used and logged', async (t) => {
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server', notAfter: new Date(Date.now() - 1000) }));
  const { log, lines } = recordingLog();
  const files = await openTlsFiles({ dir, use: 'server', ca: false, log });
  t.teardown(() => files.close());
  like(t, lines, [{ level: 'warn', msg: /expired/ }]);
});

test('the expiry is the earliest in the chain', async (t) => {
  const endOf = (year: number): Date => new Date(Date.UTC(year, 0));
  const [long, short] = [
    await ca.issue({ cn: 'server', notAfter: endOf(2090) }),
    await ca.issue({ cn: 'short', notAfter: endOf(2080) }),
  ];
  const expires = async (cert: string): Promise<number> =>
    (await loadTlsMaterial(await tlsDirectory(t, { cert, key: long.key }), false)).expires;
  t.equal(await expires(long.cert), endOf(2090).getTime());
  t.equal(await expires(`${long.cert}\n${short.cert}\n`), endOf(2080).getTime());
  const damaged = `${long.cert}\n${short.cert.replace('BEGIN CERTIFICATE-----\n', 'BEGIN CERTIFICATE-----\nx')}`;
  await t.rejects(expires(damaged), { message: /tls\.crt is not certificates in PEM/ });
});

test('no request fails during a reload', async (t) => {
  const next = await createCa('next');
  const [first, second] = [
    await ca.issue({ cn: 'a', ip: ['127.0.0.1'] }),
    await next.issue({ cn: 'b', ip: ['127.0.0.1'] }),
  ];
  const dir = await tlsDirectory(t, first);
  const { log, lines } = recordingLog();
  const server = await startServer({
    listen: '127.0.0.1:0',
    tls: { source: dir, pollMs },
    handler: (_request, response) => response.end('hello'),
    log,
    limits: { quietMs: 1 },
  });
  t.teardown(() => server.drain(0));

  const both = `${ca.cert}\n${next.cert}`;
  const agent = keepAlive(t, server.url, { ca: both });
  let responses = 0;
  const ended = new AbortController();
  async function client(options: object): Promise<void> {
    while (!ended.signal.aborted) {
      await send(server.url, options);
      responses += 1;
    }
  }
  const clients = [client({ agent }), client({ agent: false, ca: both })];
  await until(() => responses > 20, 'responses');
  await writeTls(dir, second);
  await until(() => lines.some((line) => line['msg'] === 'a TLS certificate was loaded again'), 'the change');
  const before = responses;
  await until(() => responses > before + 20, 'more responses');
  ended.abort();
  await Promise.all(clients);

  t.equal(
    (await send(server.url, { agent: false, ca: next.cert })).body,
    'hello',
    'new connections get the new certificate',
  );
  await t.rejects(send(server.url, { agent: false, ca: ca.cert }), 'not the old one');
});
