/** Where `inspect` finds credentials and mirrors: pull secrets, plugins, files of the node. */
import t, { type Test } from 'tap';
import { run } from '../run.ts';
import { dockerConfig, files, privateApp, pullSecret, resultsIn, registry } from '../world.ts';
import { like } from '../../support/like.ts';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { answering, configText, writePlugin } from '../../daemon/kubelet/support.ts';
import { image } from '../../support/registry/content.ts';
import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { homeDirectory } from '../../../cmd/wiring/inspection.ts';

const password = 'password-of-ann';
const ofJson = 'kind: Secret\ntype: kubernetes.io/dockerconfigjson';

t.test('each form of a pull secret is read', async (t) => {
  const { server, image } = await privateApp(t);
  const config = dockerConfig(server.host, 'ann', password);
  const legacy = JSON.stringify({ [`https://${server.host}`]: { username: 'ann', password } });
  const encoded = (text: string) => Buffer.from(text).toString('base64');
  const other = pullSecret(dockerConfig('other.example', 'bob', 'password-of-bob'));
  const cases: [what: string, text: string][] = [
    ['JSON', pullSecret(config)],
    ['YAML', `${ofJson}\ndata:\n  .dockerconfigjson: ${encoded(config)}\n`],
    ['stringData', `${ofJson}\nstringData:\n  .dockerconfigjson: '${config}'\n`],
    ['dockercfg', `kind: Secret\ntype: kubernetes.io/dockercfg\ndata:\n  .dockercfg: ${encoded(legacy)}\n`],
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
  const secrets = ['one', 'two'].map((name) => `--pull-secret=${directory}/${name}.json`);
  const { code } = await run(['inspect', `--docker-config=${directory}/config.json`, ...secrets, image]);
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
    ['broken YAML', `kind: Secret\ndata:\n  a: "${secret}\n`, /secret\.txt:\d+:\d+: /],
    ['text', secret, /secret\.txt:1: is neither a Secret nor a docker configuration/],
    ['another kind', `kind: ConfigMap\ndata: { a: ${secret} }`, /:1: is neither a Secret nor a docker/],
    ['another kind after a Secret', `${pullSecret('{}')}\n---\nkind: ConfigMap\n`, /:3: is neither a Secret/],
    ['another type', opaque, /the kubelet would ignore/],
    ['another key', `${ofJson}\nstringData: { config: "${secret}" }`, /the kubelet would ignore/],
    ['no base64', `${ofJson}\ndata: { .dockerconfigjson: "${secret}%" }`, /pull secret .*base64/],
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

function node(t: Test, host: string, script: string): readonly string[] {
  const { directory, config } = files(t, { config: configText({ name: 'plugin', matchImages: [host] }) });
  const bin = join(directory, 'bin');
  mkdirSync(bin, { mode: 0o755 });
  writePlugin(join(bin, 'plugin'), script);
  return ['--kubelet-config-config', config, '--kubelet-config-bin-dir', bin];
}

t.test('a plugin’s credential is used and named', async (t) => {
  const { server, image } = await privateApp(t);
  const flags = node(t, server.host, answering({ auth: { [server.host]: { username: 'ann', password } } }));
  const json = await run(['inspect', '-o', 'json', ...flags, image]);
  t.equal(json.code, 0, json.err);
  like(t, resultsIn(json.out), [{ credentialSource: 'credential-provider', source: 'registry' }]);
  const verbose = await run(['inspect', '-v', ...flags, image]);
  t.match(verbose.out, `  credential-provider: ${flags[1] ?? ''}\n`);
  t.match(verbose.out, `credential-provider ${server.host} (plugin plugin)`);
  t.notMatch(verbose.out + verbose.err + json.out, /password-of-ann/);
});

t.test('a failed plugin is reported', async (t) => {
  const { server, image } = await privateApp(t);
  const script = `console.error('password=${password} was refused'); process.exitCode = 3;`;
  const { code, out, err } = await run(['inspect', '-v', ...node(t, server.host, script), image]);
  t.equal(code, 1);
  t.match(out + err, /plugin plugin.*exit status 3: password=\[secret\] was refused/);
  t.notMatch(out + err, /password-of-ann/);
});

const config = `version = 3
[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/certs.d"
`;

t.test('the mirror of hosts.toml is used, and its files are shown', async (t) => {
  const mirror = await registry(t, { tls: false });
  mirror.push('team/app', 'v1', image('linux/s390x'), 'upstream.invalid');
  const { directory } = files(t, {
    'etc/containerd/config.toml': config,
    'etc/certs.d/upstream.invalid/hosts.toml': `[host."${mirror.url}"]\n`,
    'etc/certs.d/broken.example/hosts.toml': 'server = 1',
  });
  const flags = ['--host-root', directory, '--containerd-version', '2.4.2', '--output', 'json'];
  const found = await run(['inspect', ...flags, '--verbose', 'upstream.invalid/team/app:v1']);
  like(t, resultsIn(found.out), [
    { platforms: [{ architecture: 's390x' }], endpoint: mirror.host, credentialSource: 'anonymous' },
  ]);
  t.match(
    found.err,
    /containerd.*\/etc\/containerd\/config\.toml of containerd 2\.4\.2, hosts in \/etc\/certs\.d/,
  );
  t.match(found.err, /broken\.example\/hosts\.toml.*server must be a string/);
  const none = '--containerd-config-path-candidates=';
  const left = await run(['inspect', ...flags, none, 'upstream.invalid/team/app:v1']);
  t.equal(left.code, 3, 'an empty list disables containerd');
});

const isRoot = process.getuid?.() === 0;

t.test('a user without a home directory', { skip: !isRoot && 'only root can start it' }, async (t) => {
  const file = JSON.stringify(new URL('../../../cmd/wiring/inspection.ts', import.meta.url));
  // It becomes that user only after the import: others may not read this directory.
  const become = 'process.setgid(54321); process.setuid(54321);';
  const script = `import { homeDirectory } from ${file}; ${become} process.stdout.write(homeDirectory());`;
  // By `env -i`, because tap adds variables to child processes.
  const args = ['-i', process.execPath, '--input-type=module', '-e', script];
  t.equal(execFileSync('env', args, { encoding: 'utf8' }), '/');
});

t.test('a user with one', async (t) => t.equal(homeDirectory(), homedir()));

t.test('the sources of credentials, in order', async (t) => {
  const { server, image } = await privateApp(t);
  const login = dockerConfig(server.host, 'ann', 'password-of-ann');
  const { directory } = files(t, {
    'login/config.json': login,
    'node/var/lib/kubelet/config.json': login,
    'named.json': login,
    [`creds/${server.host}.toml`]: 'user = "ann"\nsecret = "password-of-ann"\n',
    empty: '{}',
  });
  const before = process.cwd();
  process.chdir(directory);
  t.teardown(() => process.chdir(before));
  const creds = `--creds-dir=${directory}/creds`;
  const named = `--docker-config=${directory}/named.json`;
  const file = `--docker-config-file=${directory}/named.json`;
  const cases: [what: string, args: readonly string[], source?: string | undefined, hasLogin?: boolean][] = [
    ['none', []],
    ["the user's docker login", [], 'docker-config', true],
    ['--docker-config', [named], 'docker-config'],
    ['relative to the working directory', ['--docker-config=named.json'], 'docker-config'],
    ['--creds-dir', [creds], 'registry-toml'],
    ["the node's docker config", [`--host-root=${directory}/node`], 'docker-config'],
    ['a named file is not below the host root', [`--host-root=${directory}/creds`, file], 'docker-config'],
    ['below a host root, no user login', [`--host-root=${directory}/creds`], undefined, true],
    ['a named file in place of the login', [`--docker-config=${directory}/empty`], undefined, true],
    ['before the docker config', [creds, named], 'registry-toml'],
  ];
  for (const [what, args, source, hasLogin = false] of cases) {
    const env: Record<string, string> = hasLogin ? { DOCKER_CONFIG: `${directory}/login` } : {};
    const { code, out } = await run(['inspect', '-o', 'json', ...args, image], { env });
    t.equal(code, source === undefined ? 1 : 0, what);
    const [facts] = resultsIn(out);
    if (source === undefined) t.equal(facts?.error?.code, 'unauthorized', what);
    else t.equal(facts?.credentialSource, source, what);
  }
});
