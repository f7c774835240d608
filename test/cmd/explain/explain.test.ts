import fastJsonPatch from 'fast-json-patch';
import t from 'tap';
import { archIn, isIn, onArch, requiring, termOf } from '../../support/placement-input.ts';
import { containers, explain, pod, rulesOf, shop } from './explaining.ts';
import { run } from '../run.ts';
import { files, dockerConfig, privateApp, pullSecret, type Explained } from '../world.ts';
import { like } from '../../support/like.ts';
import { parse } from 'yaml';

t.test('a pod: architectures, their sources, rules, patch', async (t) => {
  const { host } = await shop(t);
  const text = pod({ containers: containers(`${host}/web:1`, `${host}/proxy:1`) });
  const { code, err, results, file } = await explain(t, text, ['--patch']);
  t.strictSame([code, err], [0, '']);
  const [explained] = results;
  like(t, explained, {
    kind: 'Pod',
    namespace: 'default',
    name: 'web',
    place: `${file}:1`,
    admitted: true,
    outcome: 'placed',
    required: ['amd64', 'arm64'],
    images: [
      {
        image: `${host}/web:1`,
        usedBy: ['c0'],
        architectures: ['amd64', 'arm64', 's390x'],
        source: 'registry',
        credentialSource: 'anonymous',
        endpoint: host,
      },
      { image: `${host}/proxy:1`, architectures: ['amd64', 'arm64'] },
    ],
    rules: [
      { rule: 'required-architectures', message: /amd64, arm64/, meaning: /ANDed/ },
      { rule: 'tolerations' },
    ],
  });
  const patched = fastJsonPatch.applyPatch(JSON.parse(text), explained?.patch ?? []).newDocument as object;
  like(t, patched, { spec: requiring(termOf(archIn('amd64', 'arm64'))) });
  t.strictSame(explained?.patched, patched);
  const without = await explain(t, text);
  t.notOk('patch' in (without.results[0] ?? {}), 'only with --patch');
  t.notOk('patched' in (without.results[0] ?? {}), 'only with --patch');
});

t.test('workloads are explained by their pods', async (t) => {
  const { host } = await shop(t);
  const template = { metadata: {}, spec: { containers: containers(`${host}/old:1`, `${host}/arm:1`) } };
  const fine = { metadata: {}, spec: { containers: containers(`${host}/web:1`) } };
  const workload = (apiVersion: string, kind: string, spec: unknown) =>
    JSON.stringify({ apiVersion, kind, metadata: { name: kind.toLowerCase() }, spec });
  const kinds = ['Deployment', 'StatefulSet', 'ReplicaSet'];
  const text = [
    ...kinds.map((kind) => workload('apps/v1', kind, { template })),
    workload('batch/v1', 'Job', { template }),
    workload('batch/v1', 'CronJob', { jobTemplate: { spec: { template } } }),
    workload('apps/v1', 'DaemonSet', { template: fine }),
  ].join('\n---\n');
  const { code, results } = await explain(t, text, ['--patch']);
  t.equal(code, 1, 'their pods are refused');
  const found = results.map(({ kind }) => kind);
  t.strictSame(found, [...kinds, 'Job', 'CronJob', 'DaemonSet']);
  for (const explained of results.slice(0, 5)) {
    t.strictSame(rulesOf(explained), ['workload-template', 'no-common-architecture-deny'], explained.kind);
    like(t, explained, { outcome: 'denied', admitted: false }, explained.kind);
    t.strictSame(explained.patch, [], explained.kind);
  }
  const admitted = await explain(t, workload('apps/v1', 'Deployment', { template: fine }), ['--patch']);
  t.equal(admitted.code, 0);
  like(t, admitted.results, [{ outcome: 'placed', required: ['amd64', 'arm64', 's390x'] }]);
  like(t, admitted.results[0]?.patch?.[0], { op: 'add', path: '/spec/affinity' }, 'of a pod');
  const daemonSet = results[5];
  t.equal(daemonSet?.outcome, 'placed');
  t.ok(daemonSet?.patch?.every(({ path }) => path.startsWith('/spec/template/')));
});

t.test('the default output is a table', async (t) => {
  const { host } = await shop(t);
  const { 'pod.yaml': file } = files(t, {
    'pod.yaml': [
      pod({ containers: containers(`${host}/web:1`, `${host}/gone:1`) }),
      pod({ containers: containers(`${host}/old:1`, `${host}/arm:1`) }, { name: 'never' }),
    ].join('\n---\n'),
  });
  const { code, out } = await run(['explain', '-f', file, '--patch']);
  t.equal(code, 1);
  t.match(out, `Pod default/web (${file}:1)\n  decision  allowed-unknown: admitted, changed by`);
  t.match(out, /\n {2}requires +amd64, arm64, s390x\n/);
  t.match(out, /\n {2}IMAGE +USED BY +ARCHITECTURES +SOURCE +CREDENTIAL +ENDPOINT\n/);
  t.match(out, new RegExp(`\\n  ${host}/web:1 +c0 +amd64 arm64 s390x +registry +anonymous +${host}\\n`));
  t.match(out, new RegExp(`\\n  ${host}/gone:1 +c1 +unknown \\(not-found\\) +- +- +${host}\\n`));
  t.match(out, `\n  ${host}/gone:1: not-found: `);
  t.match(out, /\n {2}unknown-image-allow +/);
  t.match(out, /\n {2}patch: \[\n/);
  t.match(out, /\n {2}after: \{\n {4}"affinity": \{\n/);
  t.match(out, `\nPod default/never (${file}:3)\n  decision  denied\n  because `);
  t.notMatch(out, /requires +none/, 'a refused pod does not stay pending');
});

t.test("the pod's own terms stay beside the requirement", async (t) => {
  const { host } = await shop(t);
  const amd64 = termOf(archIn('amd64'));
  const node = { matchFields: [isIn('metadata.name', 'n1')] };
  const own = requiring(termOf(isIn('zone', 'a')), amd64, node);
  const text = pod({ containers: containers(`${host}/arm:1`), ...own });
  const { results, file } = await explain(t, text);
  like(t, results, [{ required: ['arm64'], keptTerms: [amd64, node] }]);
  const { out } = await run(['explain', '-f', file]);
  t.match(out, /requires +arm64; its own terms also allow amd64, node n1\n/u);
});

t.test('constraints: widen', async (t) => {
  const { host } = await shop(t);
  const config =
    'apiVersion: arch.example/v1alpha1\nkind: PodPlacementConfig\n' +
    'metadata: { name: charts, namespace: default }\nspec: { constraints: widen }\n';
  const spec = { ...onArch('amd64'), containers: containers(`${host}/proxy:1`) };
  const text = `${config}---\n${pod(spec)}`;
  const { results, file } = await explain(t, text);
  like(t, results, [
    {
      outcome: 'placed',
      required: ['amd64', 'arm64'],
      widened: onArch('amd64'),
      rules: [{ rule: 'constraint-widened', message: /names amd64; .* amd64, arm64$/ }, {}],
      warnings: [/is widened to amd64, arm64/],
    },
  ]);
  const { out } = await run(['explain', '-f', file]);
  t.match(out, /requires +amd64, arm64\n +instead of +nodeSelector kubernetes.io\/arch=amd64\n/);
});

t.test('secrets and service accounts in files apply', async (t) => {
  const { server, image } = await privateApp(t);
  const spec = { containers: containers(image) };
  const login = dockerConfig(server.host, 'ann', 'password-of-ann');
  const secret = (namespace?: string) =>
    pullSecret(login, { name: 'regcred', ...(namespace !== undefined && { namespace }) });
  const imagePullSecrets = [{ name: 'regcred' }];
  const metadata = { name: 'default' };
  const named = { ...spec, imagePullSecrets };
  const account = JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata, imagePullSecrets });
  const cases: [what: string, documents: string[], args: string[], credential: string | undefined][] = [
    ['none', [pod(spec)], [], undefined],
    ['named by the pod', [secret(), pod(named)], [], 'pull-secret'],
    ['after the pod', [pod(named), secret()], [], 'pull-secret'],
    ['named by its service account', [account, secret(), pod(spec)], [], 'pull-secret'],
    ['of another account', [account, secret(), pod({ ...spec, serviceAccountName: 'x' })], [], undefined],
    ['not named', [secret(), pod(spec)], [], undefined],
    ['in another namespace', [secret('other'), pod(named)], [], undefined],
    ['in the namespace of the flag', [secret('other'), pod(named)], ['-n', 'other'], 'pull-secret'],
    ['a flag moves no object', [secret('other'), pod(named, { namespace: 'a' })], ['-n', 'other'], undefined],
  ];
  for (const [what, documents, args, credential] of cases) {
    const { results, err } = await explain(t, documents.join('\n---\n'), args);
    const [found] = results[0]?.images ?? [];
    if (credential === undefined) t.equal(found?.unknown, 'unauthorized', what);
    else t.equal(found?.credentialSource, credential, what);
    t.notMatch(err, /password/, what);
  }
  const { err } = await explain(t, pod(named));
  const warning =
    /^archwright: warning: pull secret default\/regcred is not in the files \(the cluster is ignored\)/m;
  like(t, err, warning);
  t.equal(err.split('\n').length, 2, 'said once');
});

t.test('several files and standard input; other kinds are skipped with a message', async (t) => {
  const { host } = await shop(t);
  const text = pod({ containers: containers(`${host}/web:1`) });
  const { 'a.yaml': a, 'b.yaml': b } = files(t, {
    'a.yaml': `apiVersion: v1\nkind: Service\nmetadata: { name: "front\\e[2J" }\n---\n${text}`,
    'b.yaml': `{"kind": "List", "items": [${text}, {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "metadata": {"name": "ancient"}}]}`,
  });
  const { code, out, err } = await run(['explain', '-f', a, '-f', b, '-f', '-', '-o', 'yaml'], {
    stdin: text,
  });
  t.equal(code, 0);
  const { results } = parse(out) as { results: Explained[] };
  const places = results.map(({ place }) => place);
  t.strictSame(places, [`${a}:5`, `${b}:1`, 'standard input:1']);
  t.match(err, `${a}:1: skipped Service front?[2J: it has no pods`);
  t.match(err, `${b}:1: skipped Deployment ancient`);
});

t.test('invalid input fails, with its position', async (t) => {
  const deployment = '{"apiVersion":"apps/v1","kind":"Deployment","spec":{}}';
  const cases: [what: string, text: string, error: RegExp][] = [
    ['no spec', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}', /spec is not an object/],
    ['no template', deployment, /spec\.template is not an object/],
  ];
  for (const [what, text, error] of cases) {
    const { code, results, file } = await explain(t, text);
    t.equal(code, 1, what);
    like(t, results, [{ error, admitted: false }], what);
    const { out } = await run(['explain', '-f', file]);
    t.match(out, /invalid: .*the webhook would admit it unchanged/, what);
  }
  const { host } = await shop(t);
  const beside = await explain(t, `hello\n---\n${pod({ containers: containers(`${host}/web:1`) })}`);
  const err = /input\.yaml:1: not a Kubernetes object/;
  like(t, beside, { code: 1, err, results: [{ outcome: 'placed' }] }, 'the others are explained');
});
