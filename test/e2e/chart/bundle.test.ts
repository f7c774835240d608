/** The bundled program behaves like the source. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createCa } from '../../support/certificates.ts';
import { freePorts } from '../cluster/ports.ts';

/** Commands for both. */
const cases: readonly (readonly string[])[] = [
  ['--help'],
  ['webhook', '--help'],
  ['agent', '--help'],
  ['controller', '--help'],
  ['clean', '--help'],
  ['probe', '--timeout', 'soon'],
  ['nonsense'],
  ['webhook', '--nonsense'],
  ['config', 'print'],
  ['config', 'check', 'examples/config/several-architectures.toml'],
  ['config', 'check', 'package.json'],
  ['explain', '-f', 'examples/pods/own-node-selector.yaml'],
  ['inspect', 'not a reference'],
  ['completion', 'bash'],
  ['webhook'],
  ['agent', '--tls-dir', '/nowhere'],
];

interface Answer {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(entry: string, args: readonly string[]): Answer {
  const { status, stdout, stderr } = spawnSync(process.execPath, [entry, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
  });
  return { code: status, out: timeless(stdout), err: timeless(stderr) };
}

function timeless(text: string): string {
  return text.replaceAll(/"time":"[^"]*"/g, '"time":""');
}

/** Status, media type and text of a webhook's answers. The bundle has only a part of the table of media types. */
async function webhookAnswers(t: Test, entry: string, tlsDir: string): Promise<readonly unknown[]> {
  const [port = 0, metrics = 0] = await freePorts(2);
  const flags = [
    `--listen=127.0.0.1:${port}`,
    `--metrics-listen=127.0.0.1:${metrics}`,
    `--tls-dir=${tlsDir}`,
  ];
  const child = spawn(process.execPath, [entry, 'webhook', ...flags], {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
    stdio: 'ignore',
  });
  t.teardown(() => child.kill('SIGKILL'));
  const ca = readFileSync(join(tlsDir, 'ca.crt'));
  const ask = (method: string, path: string, body = ''): Promise<readonly unknown[]> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const sent = request(
        `https://127.0.0.1:${port}${path}`,
        { ca, method, headers, agent: false },
        (answer) => {
          text(answer).then(
            (said) => resolve([answer.statusCode, answer.headers['content-type'], said]),
            reject,
          );
        },
      );
      sent.on('error', reject).end(body);
    });
  for (let tries = 0; ; tries++) {
    const isUp = await ask('GET', '/readyz').then(
      ([status]) => status === 200,
      () => false,
    );
    if (isUp) break;
    if (tries === 600) throw new Error(`${entry} does not become ready`);
    await pause(100);
  }
  const answers = [
    await ask('GET', '/healthz'),
    await ask('GET', '/readyz'),
    await ask('GET', '/nowhere'),
    await ask('POST', '/mutate', '{"kind":"Pod"}'),
    await ask('POST', '/mutate', 'no JSON'),
    await ask('POST', '/validate', review),
  ];
  child.kill('SIGKILL');
  return answers;
}

const review = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', kind: { version: 'v1', kind: 'Pod' }, object: {} },
});

t.test('bundle and source give the same answers', async (t) => {
  // Below the project, because the version is found from there; not in dist, which others may use at the same time.
  const directory = t.testdir();
  execFileSync(process.execPath, ['scripts/bundle.ts', directory], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const bundle = join(directory, 'archwright.mjs');
  t.ok(existsSync(bundle));
  for (const args of cases) t.same(run(bundle, args), run('cmd/archwright.ts', args), args.join(' '));
  const ca = await createCa();
  const { cert, key } = await ca.issue({ cn: 'archwright-webhook', ip: ['127.0.0.1'] });
  const tlsDir = join(directory, 'tls');
  mkdirSync(tlsDir);
  for (const [name, pem] of Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert }))
    writeFileSync(join(tlsDir, name), pem);
  const [bundled, source] = [
    await webhookAnswers(t, bundle, tlsDir),
    await webhookAnswers(t, 'cmd/archwright.ts', tlsDir),
  ];
  t.same(bundled, source);
  t.match(bundled[0], [200, 'text/plain; charset=utf-8', 'ok\n']);
  t.match(run(bundle, ['--version']).out, /^archwright \d+\.\d+\.\d+ \([0-9a-f]{12,40}\)\n$/);
});
