import t from 'tap';
import { run } from '../run.ts';
import { dockerConfig, files, privateApp, pullSecret, resultsIn } from '../world.ts';
import { like } from '../../support/like.ts';

const password = 'password-of-ann';
const ofType = 'kind: Secret\ntype: kubernetes.io/';

t.test('each form of a pull secret is read', async (t) => {
  const { server, image } = await privateApp(t);
  const config = dockerConfig(server.host, 'ann', password);
  const legacy = JSON.stringify({ [`https://${server.host}`]: { username: 'ann', password } });
  const encoded = (text: string) => Buffer.from(text).toString('base64');
  const other = pullSecret(dockerConfig('other.example', 'bob', 'password-of-bob'));
  const cases: [what: string, text: string][] = [
    ['JSON', pullSecret(config)],
    ['YAML', `${ofType}dockerconfigjson\ndata:\n  .dockerconfigjson: ${encoded(config)}\n`],
    ['stringData', `${ofType}dockerconfigjson\nstringData:\n  .dockerconfigjson: '${config}'\n`],
    ['dockercfg', `${ofType}dockercfg\ndata:\n  .dockercfg: ${encoded(legacy)}\n`],
    ['a list', `{"kind": "List", "items": [${other}, ${pullSecret(config)}]}`],
    ['a bare config.json', config],
    ['a bare .dockercfg', legacy],
  ];
  for (const [what, text] of cases) {
    const { 'secret.txt': file } = files(t, { 'secret.txt': text });
    const { code, out, err } = await run(['inspect', '-o', 'json', '--pull-secret', file, image]);
    t.equal(code, 0, `${what}: ${out}${err}`);
    t.equal(resultsIn(out)[0]?.credentialSource, 'pull-secret', what);
  }
  const { code } = await run(['inspect', '--pull-secret', '-', image], { stdin: pullSecret(config) });
  t.equal(code, 0, 'standard input');
});

t.test('pull secrets come first, in the order given', async (t) => {
  const { server, image } = await privateApp(t);
  const { directory } = files(t, {
    'one.json': pullSecret(dockerConfig(server.host, 'one', 'password-of-one')),
    'two.json': pullSecret(dockerConfig(server.host, 'two', 'password-of-two')),
    'config.json': dockerConfig(server.host, 'ann', password),
  });
  const { code } = await run([
    'inspect',
    `--docker-config=${directory}/config.json`,
    `--pull-secret=${directory}/one.json`,
    `--pull-secret=${directory}/two.json`,
    image,
  ]);
  t.equal(code, 0);
  const presented = server.requests.flatMap(({ authorization }) => authorization?.user ?? []);
  t.strictSame(presented, ['one', 'two', 'ann']);
});

t.test('an invalid pull secret is an error that quotes no content', async (t) => {
  const config = '{"auths": {"registry.example": {"auth": "bm9jb2xvbg=="}}}';
  const secret = 'very-secret-text';
  const opaque = `kind: Secret\ntype: Opaque\nstringData: { .dockerconfigjson: "${secret}" }`;
  const cases: [what: string, text: string, message: RegExp][] = [
    ['empty', '', /secret\.txt: is empty/],
    ['only comments', '# nothing\n---\n', /secret\.txt: is empty/],
    ['broken YAML', `kind: Secret\ndata:\n  a: "${secret}\n`, /secret\.txt:\d+:\d+: /],
    ['broken JSON', `{"auths": {"${secret}"`, /secret\.txt:\d+:\d+: /],
    ['text', secret, /secret\.txt:1: is neither a Secret nor a docker configuration/],
    ['a list of texts', `- ${secret}`, /secret\.txt:1: is neither a Secret nor a docker configuration/],
    ['another kind', `kind: ConfigMap\ndata: { a: ${secret} }`, /:1: is neither a Secret nor a docker/],
    ['another kind after a Secret', `${pullSecret('{}')}\n---\nkind: ConfigMap\n`, /:3: is neither a Secret/],
    ['another type', opaque, /the kubelet would ignore/],
    [
      'another key',
      `${ofType}dockerconfigjson\nstringData: { config: "${secret}" }`,
      /the kubelet would ignore/,
    ],
    [
      'no base64',
      `${ofType}dockerconfigjson\ndata: { .dockerconfigjson: "${secret}%" }`,
      /pull secret .*base64/,
    ],
    ['no configuration', pullSecret(`["${secret}"]`), /pull secret regcred: the document is not an object/],
    ['an auth without colon', pullSecret(config), /pull secret regcred: .*base64\(username:password\)/],
    ['the same in a bare config.json', config, /pull secret .*secret\.txt: .*base64\(username:password\)/],
  ];
  for (const [what, text, message] of cases) {
    const { 'secret.txt': file } = files(t, { 'secret.txt': text });
    const { code, out, err } = await run(['inspect', '--pull-secret', file, 'registry.example/a:1']);
    t.equal(code, 2, what);
    t.equal(out, '', what);
    like(t, err, message, what);
    t.notMatch(err, secret, what);
    t.match(err, /See archwright inspect --help/, what);
  }
});
