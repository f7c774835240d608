import { join } from 'node:path';
import t from 'tap';
import { helmChart, image, multiArch, type Content } from '../../support/registry/content.ts';
import { run } from '../run.ts';
import { child, dockerConfig, files, privateApp, registry, registryWithApp, resultsIn } from '../world.ts';

const multi = multiArch(['linux/amd64', 'linux/arm64', 'linux/arm/v7'], { attestations: true });
const single = image('linux/s390x', { flavor: 'docker' });

t.test('the default output is a table', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  server.push('team/old', 'v1', single);
  const [app, old] = [`${server.host}/team/app:v1`, `${server.host}/team/old:v1`];
  const { code, out, err } = await run(['inspect', app, old]);
  t.equal(code, 0);
  t.equal(err, '');
  const row = (image: string, kind: string, { digest }: Content, platforms: string): string[] => {
    const [, hex = ''] = digest.split(':');
    return [image, kind, hex.slice(0, 12), 'registry', 'anonymous', server.host, platforms];
  };
  const rows = out.split('\n').map((line) => line.split(/ {2,}/));
  t.strictSame(rows, [
    ['IMAGE', 'KIND', 'DIGEST', 'SOURCE', 'CREDENTIAL', 'ENDPOINT', 'PLATFORMS'],
    row(app, 'OCI index', multi, 'linux/amd64 linux/arm64 linux/arm/v7'),
    row(old, 'Docker image', single, 'linux/s390x'),
    [''],
  ]);
});

t.test('errors say what to do', async (t) => {
  const { image } = await privateApp(t);
  const open = await registry(t);
  open.push('team/chart', 'v1', helmChart());
  const images = [image, `${open.host}/team/none:v1`, `${open.host}/team/chart:v1`, 'team/APP'];
  const { code, out } = await run(['inspect', ...images]);
  t.equal(code, 1);
  const lines = out.split('\n');
  t.match(lines[1], /unauthorized$/);
  t.match(lines[2], /not-found$/);
  t.match(lines[3], /not-an-image$/);
  t.match(lines[4], /invalid-reference$/);
  const [, ...errors] = lines.slice(5);
  t.match(
    errors[0],
    /unauthorized: .*without a credential: log in with docker login, set --docker-config-file/,
  );
  t.match(errors[1], /not-found: .*check the name and the tag/);
  t.match(errors[2], /not-an-image: .*artifact without platforms/);
  t.match(errors[3], /invalid-reference: .*lowercase/);
});

t.test('an override is the source, without a registry request', async (t) => {
  const { 'archwright.toml': config } = files(t, {
    'archwright.toml':
      'imageOverrides = [{ match = "nowhere.example/**", architectures = ["arm64"] }, { match = "any.example/**", architectures = [] }]',
  });
  const images = ['nowhere.example/team/app:1', 'any.example/data:1'];
  const json = await run(['inspect', '-o', 'json', '--config', config, ...images]);
  t.equal(json.code, 0);
  const sources = resultsIn(json.out).map(({ source }) => source);
  t.strictSame(sources, ['override', 'override']);
  const { code, out } = await run(['inspect', '--verbose', '--config', config, ...images]);
  t.equal(code, 0);
  t.match(out, /nowhere\.example\/team\/app:1 +- +- +override +- +- +linux\/arm64 windows\/arm64\n/);
  t.match(out, /any\.example\/data:1 +- +- +override +- +- +any\n/);
  t.match(out, /no request: imageOverrides applies/);
});

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
  const creds = `--creds-dir=${directory}/creds`;
  const named = `--docker-config=${directory}/named.json`;
  const cases: [what: string, args: readonly string[], source?: string | undefined, hasLogin?: boolean][] = [
    ['none', []],
    ["the user's docker login", [], 'docker-config', true],
    ['--docker-config', [named], 'docker-config'],
    ['--creds-dir', [creds], 'registry-toml'],
    ["the node's docker config", [`--host-root=${directory}/node`], 'docker-config'],
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

t.test('in the container of an agent, the variables and the file of the agent apply', async (t) => {
  const auth = { kind: 'basic', users: { ann: 'password-of-ann' } } as const;
  const { server, image } = await registryWithApp(t, { auth });
  const { directory } = files(t, {
    [`creds/${server.host}.toml`]: 'user = "ann"\nsecret = "password-of-ann"\n',
    'registry.pem': server.ca,
    'host/etc/hostname': '',
    'state/image-facts.ndjson': 'not facts',
  });
  const { 'archwright.toml': ARCHWRIGHT_CONFIG } = files(t, {
    'archwright.toml': `credsDir = "${directory}/creds"\ncaFiles = ["${directory}/registry.pem"]\n`,
  });
  // As in charts/archwright/templates/agent/daemonset.yaml.
  const env = {
    ARCHWRIGHT_CONFIG,
    ARCHWRIGHT_LISTEN: ':9443',
    ARCHWRIGHT_TLS_DIR: '/etc/archwright/tls',
    ARCHWRIGHT_HOST_ROOT: `${directory}/host`,
    ARCHWRIGHT_STATE_DIR: `${directory}/state`,
    ARCHWRIGHT_NODE_NAME: 'n1',
  };
  const { code, out, err } = await run(['inspect', '--verbose', image], { env });
  t.strictSame([code, err], [0, '']);
  t.match(out, `registry-toml ${server.host} (${directory}/creds/${server.host}.toml)  200`);
  t.notMatch(out, /password-of/);
  t.equal((await run(['inspect', image])).code, 1, 'without them, no credential');
});

t.test('a relative docker config is found from the working directory', async (t) => {
  const { server, image } = await privateApp(t);
  const { directory } = files(t, { 'mine.json': dockerConfig(server.host, 'ann', 'password-of-ann') });
  const before = process.cwd();
  process.chdir(directory);
  t.teardown(() => process.chdir(before));
  const { code, out } = await run(['inspect', '--docker-config', 'mine.json', image]);
  t.equal(code, 0, out);
});

t.test('a registry that never responds', async (t) => {
  const { server, image } = await registryWithApp(t);
  server.faults.add(/manifests/, { kind: 'hold' });

  await t.test('ends at the time limit', async (t) => {
    const { code, out } = await run(['inspect', '-o', 'json', '--inspect-timeout', '200ms', image]);
    t.equal(code, 3);
    t.equal(resultsIn(out)[0]?.error?.code, 'timeout');
  });

  await t.test('ends at once on a stop signal', async (t) => {
    server.clearRequests();
    const inspecting = child(t, ['inspect', image]);
    await server.waitFor(() => true);
    inspecting.kill('SIGINT');
    const { code, out } = await inspecting.ended;
    t.equal(code, 130);
    t.equal(out, '');
  });
});

t.test('a named credential file that is missing is reported, without --verbose too', async (t) => {
  const { image } = await registryWithApp(t);
  const missing = join(t.testdir(), 'none');
  for (const [flag, kind] of [
    ['--creds-dir', 'directory'],
    ['--docker-config', 'file'],
  ] as const) {
    const { code, err } = await run(['inspect', `${flag}=${missing}`, image]);
    t.equal(code, 0, 'the image needs none');
    t.match(err, /^archwright: warn: some credentials are not used: /);
    t.ok(err.includes(`origin ${missing}, problem there is no such ${kind}`), err);
  }
});
