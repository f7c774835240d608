import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { logins } from '../../examples/demo/registries.ts';

const main = fileURLToPath(new URL('../../examples/demo/main.ts', import.meta.url));
const pods = fileURLToPath(new URL('../../examples/pods/', import.meta.url));
const examples = readdirSync(pods).filter((name) => name.endsWith('.yaml'));

/** Nothing of it may be written anywhere that is not meant for it. */
const secrets = [
  ...Object.values(logins).flatMap(({ username, password }) => [
    password,
    Buffer.from(password).toString('base64'),
    Buffer.from(`${username}:${password}`).toString('base64'),
  ]),
  // The test registry's tokens and the kubeconfig's.
  'token-issuer',
  'of-the-test',
];

interface Demo {
  readonly child: ChildProcess;
  /** Where it makes its temporary directory. */
  readonly tmp: string;
  readonly text: () => string;
  /** Waits for output; fails when the demo ends without it. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<{ code: number | null; out: string; err: string }>;
}

function start(t: Test, args: string[] = [], more: Record<string, string> = {}): Demo {
  const tmp = t.testdir({});
  // Without what tap adds to each process it starts.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...env, ...more, TMPDIR: tmp },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGTERM'));
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }));
  async function until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(out);
      if (found) return found;
      const more = once(child.stdout ?? child, 'data').then(() => true);
      if (!(await Promise.race([more, ended.then(() => false)]))) {
        throw new Error(`the demo ended without ${pattern}: ${err}`);
      }
    }
  }
  return { child, tmp, text: () => out, until, ended };
}

function pidsIn(text: string): number[] {
  return [...text.matchAll(/process (\d+)/g)].map(([, pid]) => Number(pid));
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Three children were there, and neither they nor a file are left. */
function leavesNothing(t: Test, demo: Demo): void {
  const pids = pidsIn(demo.text());
  t.equal(pids.length, 3, 'two agents and a webhook were started');
  t.same(pids.filter(runs), [], 'no child is left');
  t.same(readdirSync(demo.tmp), [], 'no file is left');
}

function tellsNoSecret(t: Test, text: string): void {
  t.same(
    secrets.filter((secret) => text.includes(secret)),
    [],
    'no secret in the output',
  );
}

/** The block of one example. */
function blockOf(out: string, file: string): string {
  const from = out.indexOf(`\n${file}: `);
  return from < 0 ? '' : out.slice(from, out.indexOf('\n\n', from + 1));
}

t.test('shows every example and ends well', async (t) => {
  // A proxy or a setting of whoever runs it must not change what is shown.
  const demo = start(t, [], { HTTPS_PROXY: 'http://127.0.0.1:9', ARCHWRIGHT_ON_UNKNOWN_IMAGE: 'deny' });
  const { code, out, err } = await demo.ended;
  t.same([code, err], [0, '']);
  for (const file of examples) {
    const block = blockOf(out, file);
    t.match(block, /^ {2}# .*\n(?:.*\n)* {2}images/m, `${file} has its comment and images`);
    t.match(block, /^ {2}decision {3}\w/m, `${file} has a decision`);
    t.match(block, /^ {2}patch {6}(?:\d+ operations, applied|none)/m, `${file} has a patch or none`);
  }
  t.notMatch(out, /\u001b\[/, 'no color where there is no terminal');
  tellsNoSecret(t, out);
  leavesNothing(t, demo);

  const lines: [string, RegExp][] = [
    ['mirrored.yaml', /nginx:1 +amd64 arm64 +mirror 127\.0\.0\.1:\d+ for docker\.io +.*\(docker-config\)/],
    ['private-with-secret.yaml', /team\/app:1 +amd64 arm64 +private\.example +with the pod's pull secret/],
    ['private-without-secret.yaml', /team\/app:1 +amd64 arm64 +private\.example +.*\(registry-toml\)/],
    ['sidecars.yaml', /shop\/web:1 +amd64 arm64 s390x +public\.example +anonymously/],
    ['sidecars.yaml', /add \/spec\/affinity \{.*"values":\["amd64","arm64"\]/],
    ['unknown-image.yaml', /shop\/web:no-such-tag +unknown: not-found/],
    ['unknown-image.yaml', /A controller decides it later/],
    ['unknown-image.yaml', /add \/spec\/schedulingGates/],
    ['no-common-architecture.yaml', /message +no architecture can run all images: .*billing:1 has amd64/],
    ['deployment-no-common.yaml', /warning +archwright: pods of this template cannot be placed/],
    ['disabled.yaml', /skipped: disabled-by-pod/],
  ];
  for (const [file, pattern] of lines) t.match(blockOf(out, file), pattern, file);
});

t.test('counts what the registries were asked', async (t) => {
  const { out } = await start(t).ended;
  const counts: Readonly<Record<string, readonly number[]>> = Object.fromEntries(
    [...out.matchAll(/^ {2}(public\.example|private\.example|mirror) .*?((?: {2,}\d+){6})$/gm)].map(
      ([, name = '', numbers = '']) => [name, numbers.trim().split(/ +/).map(Number)],
    ),
  );
  // Eight images, two indexes inside of one and a tag that is not there; a HEAD for `Always`; two single manifests' configs.
  t.same(counts['public.example'], [11, 1, 2, 0, 0, 1]);
  // Which node owns an image depends on its port: the one without a login is refused before the other is asked, or never asked.
  t.match(counts['private.example'], [Number, 0, 0, Number, Number, 0]);
  t.match(counts['mirror'], [Number, 0, 0, 0, Number, 0]);
  for (const [name, granted] of [
    ['private.example', 2],
    ['mirror', 1],
  ] as const) {
    const [manifests = 0, , , , refused = 0] = counts[name] ?? [];
    t.equal(manifests - refused, granted, `${name} gave out what was asked for once for each credential`);
  }
  t.match(out, `${examples.length} objects, 10 images, 2 nodes: the registries gave out each image once`);
  t.match(
    out,
    /the same answers; requests to registries: 1\n.*Always: HEAD public\.example\/v2\/shop\/web\/manifests\/1\n/,
  );
});

t.test('--stay', async (t) => {
  const demo = start(t, ['--stay']);
  const [line] = await demo.until(/^curl .*$/m);
  const [, logs = ''] = await demo.until(/^ {2}Logs: (.*)$/m);

  await t.test('the line it prints sends a review', async (t) => {
    if (!existsSync('/usr/bin/curl')) return t.comment('this machine has no curl');
    const { stdout } = await promisify(execFile)('sh', ['-c', line]);
    const body = readFileSync(/--data-binary @(\S+)/.exec(line)?.[1] ?? '', 'utf8');
    const { request } = JSON.parse(body) as { request: { uid: string } };
    t.match(JSON.parse(stdout), {
      kind: 'AdmissionReview',
      response: { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch: String },
    });
  });

  t.same(
    readdirSync(join(logs, '..', 'reviews')).sort(),
    examples.map((name) => name.replace('.yaml', '.json')).sort(),
  );
  const names = readdirSync(logs).sort();
  t.same(names, ['agent-node-a.log', 'agent-node-b.log', 'webhook.log']);
  for (const name of names) tellsNoSecret(t, readFileSync(join(logs, name), 'utf8'));
  demo.child.kill('SIGTERM');
  const { code, err, out } = await demo.ended;
  t.same([code, err], [0, '']);
  tellsNoSecret(t, out);
  leavesNothing(t, demo);
});

t.test('a child that dies ends it with an error', async (t) => {
  const demo = start(t, ['--stay']);
  await demo.until(/^ {2}Logs: /m);
  const [agent = 0] = pidsIn(demo.text());
  process.kill(agent, 'SIGKILL');
  t.match(await demo.ended, { code: 1, err: /demo: agent-node-a ended too early \(SIGKILL\)/ });
  leavesNothing(t, demo);
});

t.test('interrupted', async (t) => {
  const demo = start(t);
  await demo.until(/process \d+[^]*\n\n/);
  demo.child.kill('SIGINT');
  t.match(await demo.ended, { code: 130, err: '' });
  leavesNothing(t, demo);
});

t.test('usage', async (t) => {
  t.match(await start(t, ['--help']).ended, { code: 0, out: /^Usage: npm run demo/, err: '' });
  t.match(await start(t, ['--sty']).ended, { code: 2, out: '', err: /^unknown argument --sty/ });
});
