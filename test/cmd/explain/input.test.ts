import t from 'tap';
import { parse } from 'yaml';
import { containers, explain, pod, rulesOf, shop } from './explaining.ts';
import { run } from '../run.ts';
import { dockerConfig, files, privateApp, pullSecret, type Explained } from '../world.ts';
import { like } from '../../support/like.ts';

t.test('secrets, service accounts and namespaces in files apply', async (t) => {
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

  const namespace =
    'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: off\n  labels: { arch.example/placement: disabled }\n';
  const disabled = await explain(t, `${namespace}---\n${pod(spec, { namespace: 'off' })}`);
  t.strictSame(rulesOf(disabled.results[0]), ['skip-disabled-by-namespace']);
  t.equal(disabled.code, 0);
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
    const { code, results } = await explain(t, text);
    t.equal(code, 1, what);
    like(t, results[0]?.error, error, what);
    t.equal(results[0]?.admitted, false, what);
    const { 'input.yaml': file } = files(t, { 'input.yaml': text });
    const { out } = await run(['explain', '-f', file]);
    t.match(out, /invalid: .*the webhook would admit it unchanged/, what);
  }
  const { host } = await shop(t);
  const beside = await explain(t, `hello\n---\n${pod({ containers: containers(`${host}/web:1`) })}`);
  t.equal(beside.code, 1, 'a document that is not an object');
  t.match(beside.err, /input\.yaml:1: not a Kubernetes object/);
  t.equal(beside.results[0]?.outcome, 'placed', 'the others are explained');
});
