/** `archwright check` against real registries. */
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { podsIn } from '../../../cmd/check/pods.ts';
import type { Result } from '../../../cmd/check/verdict.ts';
import { parseDocuments } from '../../../cmd/objects/documents.ts';
import { closedPort } from '../../support/listen.ts';
import { helmChart, image, multiArch } from '../../support/registry/content.ts';
import { containers, pod as podJson } from '../explain/explaining.ts';
import { run, type Result as Ended } from '../run.ts';
import { directory, dockerConfig, files, registry } from '../world.ts';
import { like } from '../../support/like.ts';

const multi = multiArch(['linux/amd64', 'linux/arm64']);
const single = image('linux/amd64');

type CheckResult = Result & { readonly class: string };

/**
 * Runs it with its own cache. The registry has `team/app:v1` for both architectures, `team/old:v1` for amd64.
 */
async function checker(t: Test, more: Readonly<Record<string, string>> = {}) {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  server.push('team/old', 'v1', single);
  const cache = directory(t);
  const env = { XDG_CACHE_HOME: cache, ...more };
  const check = (stdin: string, ...args: string[]): Promise<Ended> =>
    run(['check', ...args, '-'], { stdin, env });
  const json = async (stdin: string, ...args: string[]) => {
    const { code, out, err } = await check(stdin, '-o', 'json', ...args);
    const parsed = (out === '' ? { results: [], allowList: [] } : JSON.parse(out)) as {
      results: CheckResult[];
      allowList: { state: string }[];
    };
    return { code, err, ...parsed };
  };
  const [app, old] = [`${server.host}/team/app:v1`, `${server.host}/team/old:v1`];
  return { server, app, old, cache, env, check, json };
}

const verdictsOf = (results: readonly CheckResult[]): string[] => results.map(({ verdict }) => verdict);

const pod = (image: string, more = ''): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n${more}  containers:\n  - name: app\n    image: ${image}\n`;

/** Kind, line, user and name of each image. */
const imagesIn = (text: string): unknown[] =>
  parseDocuments({ file: 'f', text })
    .flatMap((document) => podsIn(document, 'f').pods)
    .flatMap(({ owner, places }) =>
      places.map(({ line, usedBy, image }) => [owner.kind, line, usedBy, image]),
    );

t.test('every kind of pod is found, with the line of each image', async (t) => {
  const template = 'template: {spec: {containers: [{name: c, image: a}]}}';
  const kinds = [
    ['apps/v1', 'Deployment', `spec: {${template}}`],
    ['apps/v1', 'StatefulSet', `spec: {${template}}`],
    ['apps/v1', 'DaemonSet', `spec: {${template}}`],
    ['apps/v1', 'ReplicaSet', `spec: {${template}}`],
    ['batch/v1', 'Job', `spec: {${template}}`],
    ['batch/v1', 'CronJob', `spec: {jobTemplate: {spec: {${template}}}}`],
    ['v1', 'ReplicationController', `spec: {${template}}`],
    ['v1', 'PodTemplate', template],
    ['argoproj.io/v1alpha1', 'Rollout', `spec: {${template}}`],
    ['serving.knative.dev/v1', 'Service', `spec: {${template}}`],
  ];
  const documents = kinds.map(
    ([apiVersion, kind, rest]) => `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n${rest}\n`,
  );
  const wanted = kinds.map(([, kind], index) => [kind, 4 + 5 * index, 'c', 'a']);
  t.strictSame(imagesIn(documents.join('---\n')), wanted);
  const parts = `# Source: chart/templates/web.yaml
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  volumes:
  - name: data
    image:
      reference: c
  initContainers:
  - name: first
    image: b
  containers:
  - image: &same a
    name: app
  - name: side
    image: *same
`;
  t.strictSame(imagesIn(parts), [
    ['Pod', 12, 'first', 'b'],
    ['Pod', 14, 'app', 'a'],
    ['Pod', 17, 'side', 'a'],
    ['Pod', 9, 'data', 'c'],
  ]);
});

t.test('lists, arrays and JSON', async (t) => {
  const bare = { metadata: { name: 'a' }, spec: { containers: containers('i') } };
  const object = { apiVersion: 'v1', kind: 'Pod', ...bare };
  const found = ['Pod', 1, 'c0', 'i'];
  const written = ['Pod', 8, 'app', 'i'];
  const cases: [what: string, input: unknown, ...images: unknown[]][] = [
    ['a v1 List', { apiVersion: 'v1', kind: 'List', items: [object, object] }, found, found],
    ['an array', [object, [object]], found, found],
    ['a typed list', { apiVersion: 'v1', kind: 'PodList', metadata: {}, items: [bare] }, found],
    ['an object of objects', { a: object, b: { c: object } }, found, found],
    ['metadata without fields', { ...object, metadata: null }, found],
    ['fields without a value', pod('i', '  initContainers:\n  volumes:\n'), ['Pod', 10, 'app', 'i']],
    [
      'a reference to a workload',
      `${pod('i')}---\napiVersion: v1\nkind: X\nmetadata: {}\nspec: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}\n`,
      written,
    ],
    [
      'an object that looks like a pod',
      `${pod('i')}---\napiVersion: x/v1\nkind: X\nmetadata: {}\nspec: {containers: [{image: i, name: 3}]}\n`,
      written,
    ],
  ];
  for (const [what, input, ...images] of cases)
    t.strictSame(imagesIn(typeof input === 'string' ? input : JSON.stringify(input)), images, what);
});

t.test('each image is looked up once, and cached for the next run', async (t) => {
  const { server, check, cache } = await checker(t);
  server.push('team/app', 'latest', multi);
  const app = `${server.host}/team/app`;
  const names = [`${app}:v1`, app, `${app}:latest`, `${app}:v1`, `${app}@${multi.digest}`];
  const input = names.map((name) => pod(name)).join('---\n');
  t.equal((await check(input)).code, 0);
  const requests = server.requests.map(({ method, path }) => `${method} ${path}`);
  t.strictSame(new Set(requests).size, requests.length, 'no repeated request');
  t.ok(requests.length <= 3, requests.join('\n'));
  server.clearRequests();
  const again = await check(input);
  t.strictSame([again.code, server.requests.length], [0, 0], 'no requests in the second run');
  t.equal((await check(input, '--no-cache')).code, 0);
  t.ok(server.requests.length > 0, 'requests without the cache');

  const file = `${cache}/archwright/image-facts.ndjson`;
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.equal(statSync(`${cache}/archwright`).mode & 0o777, 0o700);
  t.strictSame(readdirSync(`${cache}/archwright`), ['image-facts.ndjson'], 'no other files');

  const old = pod(`${server.host}/team/old:v1`);
  t.equal((await check(old)).code, 1);
  server.clearRequests();
  t.equal((await check(old)).code, 1);
  const methods = server.requests.map(({ method }) => method);
  t.strictSame(methods, ['HEAD'], 'a cached image without the architecture is checked again');
  server.push('team/old', 'v1', multi);
  t.equal((await check(old)).code, 0, 'a new push counts at once');
});

t.test('the cache is below HOME by default; it works without a directory', async (t) => {
  const { 'a-file': file } = files(t, { 'a-file': '' });
  const { app, check } = await checker(t, { XDG_CACHE_HOME: file });
  like(t, await check(pod(app)), { code: 0, err: /note: answers are not cached/ });
  like(t, await run(['check', '-'], { stdin: pod(app) }), { code: 0, err: '' });
  t.ok(existsSync(`${process.env['HOME']}/.cache/archwright/image-facts.ndjson`));
});

t.test('each verdict has its word and exit code', async (t) => {
  const { server: open, app, old, check, json } = await checker(t);
  open.push('team/chart', 'v1', helmChart());
  const secret = await registry(t, { auth: { kind: 'basic', users: { ann: 'pass' } } });
  const limited = await registry(t);
  limited.faults.add(/manifests/, { kind: 'status', status: 429, headers: { 'retry-after': '600' } });
  const broken = await registry(t);
  broken.faults.add(/manifests/, { kind: 'status', status: 500 });
  const at = `${open.host}/team`;
  const cases: [input: string, verdict: string, code: number, why: RegExp][] = [
    [pod(app), 'ok', 0, /^$/],
    [pod(old), 'missing', 1, /^has amd64$/],
    [pod(`${at}/gone:v1`), 'not-found', 1, /404/],
    [pod(`${at}/chart:v1`), 'not-an-image', 1, /artifact/],
    [pod('Not:An:Image'), 'invalid', 1, /reference/],
    [pod(app, '  nodeSelector: {kubernetes.io/arch: amd64}\n'), 'pinned', 1, /^the pod requires amd64$/],
    [pod(`${secret.host}/team/app:v1`), 'unauthorized', 3, /401/],
    [
      pod(`${limited.host}/team/app:v1`),
      'rate-limited',
      3,
      /429.*; try again after 20[\d:T-]+Z \(in 10 min\)/,
    ],
    [pod(`${broken.host}/team/app:v1`), 'unreachable', 3, /500/],
    [pod(`127.0.0.1:${await closedPort()}/team/app:v1`), 'unreachable', 3, /connect|refused/i],
    [pod(app).replace('- name', '- imagePullPolicy: Never\n    name'), 'never-pulled', 3, /never pulled/],
  ];
  for (const [input, verdict, code, why] of cases) {
    const found = await json(input);
    t.strictSame(verdictsOf(found.results), [verdict], verdict);
    like(t, found.results[0]?.why, why, verdict);
    t.equal(found.code, code, verdict);
  }
  const all = await check(cases.map(([input]) => input).join('---\n'));
  t.equal(all.code, 1, 'a finding outweighs an unreachable registry');
  const [head, ...rows] = all.out.split('\n').map((line) => line.split(/ {2,}/));
  t.strictSame(head, ['PLACE', 'WORKLOAD', 'IMAGE', 'ARM64', 'WHY']);
  const first = [/^standard input:\d+$/, 'Pod/web', old, 'missing', 'has amd64'];
  like(t, rows[0], first, 'findings come first');
  t.match(all.out, /\n\n\d+ images: .*1 missing/);
});

t.test('after a 429, a registry gets no more requests', async (t) => {
  const { server, json } = await checker(t);
  server.faults.add(/manifests/, { kind: 'status', status: 429 });
  const pods = Array.from({ length: 200 }, (_, index) => pod(`${server.host}/team/app${index}:v1`));
  const { code, results } = await json(pods.join('---\n'));
  t.equal(code, 3);
  t.ok(results.every(({ verdict, why }) => verdict === 'rate-limited' && why.includes('try again later')));
  t.ok(server.requests.length <= 16, `${server.requests.length} requests, those in progress`);
  const paths = server.requests.map(({ path }) => path);
  t.equal(new Set(paths).size, paths.length, 'no repeated request');
});

t.test('if the registry fails, a cached result is used', async (t) => {
  const { server, old, json } = await checker(t);
  const input = pod(old);
  t.equal((await json(input)).code, 1);
  server.faults.add(/manifests/, { kind: 'status', status: 429 });
  const { code, results } = await json(input);
  t.equal(code, 1);
  like(t, results, [{ verdict: 'missing', why: /has amd64; from the cache/ }]);
});

t.test("the machine's credentials are used, and never printed or stored", async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'pass-of-ann' } } });
  server.push('team/app', 'v1', multi);
  const { directory: home } = files(t, { 'config.json': dockerConfig(server.host, 'ann', 'pass-of-ann') });
  const without = await checker(t);
  const refused = await without.json(pod(`${server.host}/team/app:v1`));
  like(t, refused.results, [
    { why: /without a credential: log in with docker login, set --docker-config-file/ },
  ]);
  const { check, cache } = await checker(t, { DOCKER_CONFIG: home });
  const { code, out, err } = await check(pod(`${server.host}/team/app:v1`));
  t.equal(code, 0, out);
  const stored = readFileSync(`${cache}/archwright/image-facts.ndjson`, 'utf8');
  for (const text of [out, err, stored]) t.notMatch(text, /pass-of-ann|ann:|YW5u/);
});

t.test('several architectures', async (t) => {
  const { server, json, check } = await checker(t);
  server.push('team/app', 'v1', multiArch(['linux/amd64', 'linux/arm64', 'linux/s390x']));
  const input = pod(`${server.host}/team/app:v1`);
  t.equal((await json(input, '--require', 'arm64,amd64', '--require=s390x')).code, 0);
  const two = await check(input, '-r', 'arm64,riscv64');
  t.equal(two.code, 1);
  t.match(two.out, /PLACE +WORKLOAD +IMAGE +ARM64 +RISCV64 +WHY\n.* ok +missing +has amd64, arm64, s390x\n/);
  for (const wrong of ['amd46', '', 'arm64,x86_64']) {
    const { code, err } = await check(input, '--require', wrong);
    t.strictSame([code, /--require must (?:be an architecture|not be empty)/.test(err)], [2, true], wrong);
  }
});

t.test('in JSON, where every line is 1, each workload has its own row', async (t) => {
  const { app, check } = await checker(t);
  const deployment = (name: string, more: object) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { template: { spec: { containers: containers(app), ...more } } },
  });
  const items = [deployment('a', {}), deployment('b', { nodeSelector: { 'kubernetes.io/arch': 'amd64' } })];
  const { code, out } = await check(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  t.equal(code, 1);
  const rows = out.split('\n').map((line) => line.split(/ {2,}/));
  t.strictSame(
    rows.slice(1, 3).map(([, workload, , verdict]) => [workload, verdict]),
    [
      ['Deployment/b', 'pinned'],
      ['Deployment/a', 'ok'],
    ],
  );
});

t.test('the allow-list excepts images by pattern, architecture and date', async (t) => {
  const { server, json, check } = await checker(t);
  server.push('legacy/x', 'v1', single);
  const input = ['team/app:v1', 'team/old:v1', 'legacy/x:v1']
    .map((name) => pod(`${server.host}/${name}`))
    .join('---\n');
  const list = (text: string): string => files(t, { 'allow.toml': text })['allow.toml'];
  const entries = `[[allow]]
image = "${server.host}/legacy/**"
reason = "moves in March"
expires = "2999-03-31"

[[allow]]
image = "${server.host}/team/old"
architectures = ["arm64"]
expires = 2999-01-01

[[allow]]
image = "nginx"

[[allow]]
image = "${server.host}/team/app:v*"

[[allow]]
image = "${server.host}/team/old"
expires = "2020-02-29"
`;
  const file = list(entries);
  const found = await json(input, '--allow-list', file);
  t.equal(found.code, 0);
  t.strictSame(verdictsOf(found.results), ['ok', 'allowed', 'allowed']);
  t.match(found.results[2]?.why, /^allowed by .*legacy\/\*\* until 2999-03-31: moves in March; has amd64$/);
  const states = found.allowList.map(({ state }) => state);
  t.strictSame(states, ['used', 'used', 'unused', 'not-needed', 'expired']);
  t.match(found.err, /note: allow-list, line 11, "nginx": matches no image\n/);
  t.match(found.err, /note: allow-list, line 14, .*: is not needed, because its images have arm64\n/);
  t.match(found.err, /note: allow-list, line 17, .*: expired after 2020-02-29\n/);
  t.equal((await json(input, '--allow-list', file, '-r', 's390x')).code, 1, 'not for another architecture');
  const expired = list(`[[allow]]\nimage = "${server.host}/**"\nexpires = "2020-02-29"\n`);
  t.equal((await json(input, '--allow-list', expired)).code, 1);
  const unreachable = pod(`127.0.0.1:${await closedPort()}/x:1`);
  const gone = await json(unreachable, '--allow-list', list('[[allow]]\nimage = "**"\n'));
  like(t, gone, { code: 0, results: [{ verdict: 'allowed' }] }, 'although its registry is unreachable');

  const wrong: [text: string, message: RegExp][] = [
    ['allow = 3', /allow\.toml: allow must be a list/],
    ['[[allows]]\nimage = "a"', /allow\.toml: allows is not a known field/],
    ['[[allow]]\n[[allow]]\nimage = 3', /allow\.toml:1: image is missing/],
    ['[[allow]]\nimage = "a"\nuntil = "x"', /allow\.toml:1: until is not a known field/],
    ['[[allow]]\nimage = "a"\nexpires = "2026-02-30"', /allow\.toml:1: expires must be a day/],
    ['[[allow]]\nimage = "a"\narchitectures = ["arm46"]', /unknown architecture arm46; did you mean arm64\?/],
    ['[[allow]]\nimage = "*a*a*a*a*a*a*a*a*a*"', /more than 8 stars/],
    ['[[allow]]\nimage = ', /allow\.toml:\d+: /],
  ];
  for (const [text, message] of wrong) {
    like(t, await check(input, '--allow-list', list(text)), { code: 2, err: message }, text);
  }
});

t.test('directories are read recursively', async (t) => {
  const { app: name, env } = await checker(t);
  const { directory: root } = files(t, {
    'b/web.yml': pod(name),
    'a.yaml': pod(name),
    'c.json': podJson({ containers: containers(name) }),
    'values.yaml': 'replicas: 3\n',
    'note.yaml': 'just a text: apiVersion\n',
    'tsconfig.json': '{ // a comment\n}\n',
    'template.yaml': '{{ if }}\n',
    'README.md': '# not: [yaml',
    '.hidden/x.yaml': 'broken: [',
    'node_modules/x.yaml': 'broken: [',
    'chart/Chart.yaml': 'name: x\n',
    'chart/templates/x.yaml': '{{ if }}\n',
    'base/kustomization.yaml': 'resources: [x.yaml]\n',
    'base/x.yaml': pod(name),
  });
  const { code, out, err } = await run(['check', '-o', 'json', root], { env });
  t.equal(code, 0, err);
  const { results } = JSON.parse(out) as { results: CheckResult[] };
  const places = results.map(({ file, line }) => `${file}:${line}`);
  t.strictSame(places, [
    `${root}/a.yaml:8`,
    `${root}/b/web.yml:8`,
    `${root}/base/x.yaml:8`,
    `${root}/c.json:1`,
  ]);
  t.match(err, /chart is not read: it is a chart; helm template .*chart \| archwright check -/);
  t.match(err, /base has a kustomization/);
  symlinkSync(`${root}/base`, `${root}/link`);
  const linked = await run(['check', '-o', 'json', `${root}/link`], { env });
  like(t, JSON.parse(linked.out), { results: [{ file: `${root}/link/x.yaml` }] }, 'a link that is named');
  writeFileSync(`${root}/b/broken.yaml`, 'apiVersion: v1\nkind: Pod\nspec: [\n');
  like(t, await run(['check', root], { env }), { code: 2, err: /b\/broken\.yaml:\d+:\d+: /, out: '' });
  like(t, await run(['check', `${root}/gone`], { env }), { code: 2, err: /there is no such file/ });
  like(t, await run(['check'], { env }), { code: 2, err: /name files or directories/ });
});

t.test('invalid input fails, with its position', async (t) => {
  const { check } = await checker(t);
  const cases: [what: string, input: string, err: RegExp][] = [
    ['nothing', '', /contains no Kubernetes object/],
    ['an error message from a pipe', 'Error: chart not found\n', /(contains no|is not a) Kubernetes object/],
    ['a text', 'hello\n', /standard input:1: is not a Kubernetes object/],
    [
      'a broken workload',
      'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: "web\\e[2J"}\nspec: {}\n',
      /standard input:1: Deployment\/web\?\[2J: spec\.template is not an object/,
    ],
    [
      'deep JSON',
      `{"apiVersion":"v1","kind":"X","metadata":{},"a":${'['.repeat(9000)}${']'.repeat(9000)}}`,
      /no image/,
    ],
  ];
  for (const [what, input, err] of cases) {
    const result = await check(input);
    like(t, result.err, err, what);
    if (what !== 'deep JSON') t.strictSame([result.code, result.out], [2, ''], what);
  }
});

t.test('documents without images', async (t) => {
  const { json } = await checker(t);
  for (const none of [
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
    'apiVersion: v1\nkind: List\nitems:\n',
    'apiVersion: v1\nkind: PodList\nitems: []\n',
    'apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\n',
  ])
    like(t, await json(none), { code: 0, err: /note: the input contains no image/ }, none);
});
