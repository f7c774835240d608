/** The demo, which checks its own results, so that it tests the whole program. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { examples, leavesNothing, start, tellsNoSecret } from './demo/run.ts';
import { like } from '../support/like.ts';
import { problemsOf } from '../../examples/demo/check.ts';
import { readExamples } from '../../examples/demo/examples.ts';
import { expected } from '../../examples/demo/expected.ts';
import { podIn } from '../../examples/demo/knowledge.ts';
import { decide } from '../../src/placement/decide.ts';
import type { Operation } from '../../src/placement/decision.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../src/policy/effective/policies.ts';
import jsonPatch from 'fast-json-patch';
import { facts } from '../support/facts.ts';

/** The block of one example. */
function blockOf(out: string, file: string): string {
  const from = out.indexOf(`\n${file}: `);
  return from < 0 ? '' : out.slice(from, out.indexOf('\n\n', from + 1));
}

t.test(
  'with --verbose and --stay, it shows every part of every example, keeps running, and ends cleanly',
  async (t) => {
    // A proxy or a setting of the user must not change the output.
    const env = { HTTPS_PROXY: 'http://127.0.0.1:9', ARCHWRIGHT_ON_UNKNOWN_IMAGE: 'deny' };
    const demo = start(t, ['--verbose', '--stay'], env);
    const [line] = await demo.until(/^curl .*$/m);
    const [, logs = ''] = await demo.until(/^ {2}Logs: (.*)$/m);
    await sendsReview(t, line);
    t.strictSame(
      readdirSync(join(logs, '..', 'reviews')).sort(),
      examples.map((name) => name.replace('.yaml', '.json')).sort(),
    );
    const names = readdirSync(logs).sort();
    t.strictSame(names, ['agent-node-a.log', 'agent-node-b.log', 'webhook.log']);
    for (const name of names) tellsNoSecret(t, readFileSync(join(logs, name), 'utf8'));
    demo.child.kill('SIGINT');
    const { code, out, err } = await demo.ended;
    t.strictSame([code, err], [0, '']);
    for (const file of examples) {
      const block = blockOf(out, file);
      t.match(block, /^ {2}# .*\n(?:.*\n)* {2}images/m, `${file} has its comment and images`);
      t.match(block, /^ {2}decision {3}\w/m, `${file} has a decision`);
      t.match(block, /^ {2}patch {6}(?:\d+ operations, applied|none)/m, `${file} has a patch or none`);
    }
    t.notOk(out.includes(String.fromCharCode(27)), 'no color without a terminal');
    tellsNoSecret(t, out);
    leavesNothing(t, demo);

    like(
      t,
      blockOf(out, 'mirrored.yaml'),
      /nginx:1 +amd64 arm64 +mirror 127\.0\.0\.1:\d+ for docker\.io +.*\(docker-config\)/,
    );
    like(t, blockOf(out, 'sidecars.yaml'), /add \/spec\/affinity \{.*"values":\["amd64","arm64"\]/);
    counted(t, out);
  },
);

/** The line that `--stay` prints. */
async function sendsReview(t: Test, line: string): Promise<void> {
  if (!existsSync('/usr/bin/curl')) return t.comment('this machine has no curl');
  const { stdout } = await promisify(execFile)('sh', ['-c', line]);
  const body = readFileSync(/--data-binary @(\S+)/.exec(line)?.[1] ?? '', 'utf8');
  const { request } = JSON.parse(body) as { request: { uid: string } };
  like(t, JSON.parse(stdout), {
    kind: 'AdmissionReview',
    response: { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch: String },
  });
}

/** The output counts the requests to the registries. */
function counted(t: Test, out: string): void {
  const counts: Readonly<Record<string, readonly number[]>> = Object.fromEntries(
    [...out.matchAll(/^ {2}(public\.example|private\.example|mirror) .*?((?: {2,}\d+){6})$/gm)].map(
      ([, name = '', numbers = '']) => [name, numbers.trim().split(/ +/).map(Number)],
    ),
  );
  // Eight images, two nested indexes and a missing tag; the configs of two single manifests.
  const [manifests, heads = 0, ...others] = counts['public.example'] ?? [];
  t.strictSame([manifests, ...others], [11, 2, 0, 0, 1]);
  // One for `Always`, and two before a pod is refused if its images were looked up more than 5 s ago.
  t.ok(heads >= 1 && heads <= 3, `${heads} HEADs`);
  // The owner of an image depends on its port. The node without a login is refused first, or gets no request.
  like(t, counts['private.example'], [Number, 0, 0, Number, Number, 0]);
  like(t, counts['mirror'], [Number, 0, 0, 0, Number, 0]);
  for (const [name, granted] of [
    ['private.example', 2],
    ['mirror', 1],
  ] as const) {
    const [manifests = 0, , , , refused = 0] = counts[name] ?? [];
    t.equal(manifests - refused, granted, `${name} served each manifest once per credential`);
  }
  t.match(out, `${examples.length} objects, 10 images, 2 nodes: the registries gave out each image once`);
  t.match(
    out,
    /the same answers; requests to registries: [1-3]\n.*Always: HEAD public\.example\/v2\/shop\/web\/manifests\/1\n/,
  );
}

t.test('without --verbose, it shows one line per pod, then the requests, and no patches', async (t) => {
  const { code, out, err } = await start(t).ended;
  t.strictSame([code, err], [0, '']);
  t.match(out, /^All as expected\./m);
  const [, pods = ''] =
    /\n {2}pod +images +decision +why\n((?: {2}\S.*\n)+)\nRequests that each registry saw\n/.exec(out) ?? [];
  const lines: [string, RegExp][] = [
    ['private-with-secret', /app:1 +placed: amd64 arm64 +the image has these; read with the pull secret/],
    [
      'unknown-image',
      /waits: amd64 arm64 +web:no-such-tag is unknown \(not-found\), web:1 is unknown \(unavailable\)/,
    ],
  ];
  for (const [name, pattern] of lines)
    like(t, new RegExp(`^ {2}${name} .*$`, 'm').exec(pods)?.[0], pattern, name);
  t.strictSame(
    pods
      .trimEnd()
      .split('\n')
      .map((line) => `${/^ {2}(\S+)/.exec(line)?.[1]}.yaml`),
    examples,
  );
  t.ok(out.split('\n').length < 45, 'it fits on a screen');
  t.notMatch(out, /\/spec\/affinity|process \d/);
  counted(t, out);
});

t.test('npm ci prints no warnings about versions of Node', async (t) => {
  t.match(readFileSync('.npmrc', 'utf8'), /^loglevel=error$/m);
});

t.test('wrong usage is an error', async (t) => {
  like(t, await start(t, ['--help']).ended, { code: 0, out: /^Usage: npm run demo/, err: '' });
  like(t, await start(t, ['--sty']).ended, { code: 2, out: '', err: /^unknown argument --sty/ });
});

t.test('every example has one expectation, also in its comment, and a row in the table', async (t) => {
  t.strictSame(Object.keys(expected).sort(), examples.toSorted());
  const table = readFileSync('examples/pods/README.md', 'utf8');
  for (const file of examples) {
    t.match(readFileSync(`examples/pods/${file}`, 'utf8'), /^# [^\n]+\n(?:# [^\n]+\n)*# Expected: /u, file);
    t.ok(table.includes(`\`${file}\``), file);
  }
});

t.test('an unexpected result is a problem', async (t) => {
  const example = (await readExamples()).find(({ file }) => file === 'own-affinity.yaml');
  if (!example) throw new Error('no such example');
  const { pod, basePath } = podIn(example.request);
  const known = facts('amd64 arm64 s390x');
  const policy = policyFor(defaultConfiguration());
  const decision = decide({ pod, namespace: 'shop', namespaceLabels: {}, policy, facts: () => known });
  const operations = patchPod(pod, decision, basePath);
  const problems = (patch: readonly Operation[], response: object = {}, given = example): string => {
    const object = structuredClone(example.request.object) as object;
    const patched = jsonPatch.applyPatch(object, structuredClone([...patch])).newDocument;
    const answer = {
      response: { uid: '', allowed: true, ...response },
      operations: patch,
      patched,
    };
    return problemsOf(given, answer, { decision, operations }).join('\n');
  };
  t.equal(problems(operations), '');
  t.match(problems(operations, { allowed: false }), /^allowed: false/m);
  t.match(problems(operations, { warnings: ['x'] }), /^number of warnings: 1 instead of 0/m);
  const fewer = problems(operations.filter(({ path }) => !path.startsWith('/spec/tolerations')));
  t.match(fewer, /^patch beside what follows.*\n(?:.*\n)*tolerated architectures/m);
  t.match(problems(operations, {}, { ...example, file: 'new.yaml' }), /does not say what/);
});
