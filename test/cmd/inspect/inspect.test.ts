import t from 'tap';
import { helmChart, image, multiArch, type Content } from '../../support/registry/content.ts';
import { run } from '../run.ts';
import {
  child,
  dockerConfig,
  files,
  privateApp,
  registry,
  registryWithApp,
  resultsIn,
  pullSecret,
} from '../world.ts';
import { createIssuer } from '../../support/registry/tokens.ts';
import { like } from '../../support/like.ts';

const multi = multiArch(['linux/amd64', 'linux/arm64', 'linux/arm/v7'], { attestations: true });
const single = image('linux/s390x', { flavor: 'docker' });

t.test('the default output is a table', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  server.push('team/old', 'v1', single);
  const [app, old] = [`${server.host}/team/app:v1`, `${server.host}/team/old:v1`];
  const { code, out, err } = await run(['inspect', app, old]);
  t.strictSame([code, err], [0, '']);
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
  const rows: [image: string, code: string, message: RegExp][] = [
    [image, 'unauthorized', /without a credential: log in with docker login, set --docker-config-file/],
    [`${open.host}/team/none:v1`, 'not-found', /check the name and the tag/],
    [`${open.host}/team/chart:v1`, 'not-an-image', /artifact without platforms/],
    ['team/APP', 'invalid-reference', /lowercase/],
  ];
  const { code, out } = await run(['inspect', ...rows.map(([name]) => name)]);
  t.equal(code, 1);
  const lines = out.split('\n');
  for (const [index, [name, word, message]] of rows.entries()) {
    t.ok(lines[1 + index]?.endsWith(` ${word}`), word);
    t.ok(lines[6 + index]?.startsWith(`${name}: ${word}: `), word);
    like(t, lines[6 + index], message);
  }
});

t.test('an override is the source, without a registry request', async (t) => {
  const { 'archwright.toml': config } = files(t, {
    'archwright.toml':
      'imageOverrides = [{ match = "nowhere.example/**", architectures = ["arm64"] }, { match = "any.example/**", architectures = [] }]',
  });
  const images = ['nowhere.example/team/app:1', 'any.example/data:1'];
  const { code, out } = await run(['inspect', '--verbose', '--config', config, ...images]);
  t.equal(code, 0);
  t.match(out, /nowhere\.example\/team\/app:1 +- +- +override +- +- +linux\/arm64 windows\/arm64\n/);
  t.match(out, /any\.example\/data:1 +- +- +override +- +- +any\n/);
  t.match(out, /no request: imageOverrides applies/);
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
  };
  const { code, out, err } = await run(['inspect', '--verbose', image], { env });
  t.strictSame([code, err], [0, '']);
  t.match(out, `registry-toml ${server.host} (${directory}/creds/${server.host}.toml)  200`);
  t.notMatch(out, /password-of/);
  t.equal((await run(['inspect', image])).code, 1, 'without them, no credential');
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

t.test('each request and its status are listed', async (t) => {
  const issuer = createIssuer({ users: { ann: 'password-of-ann' } });
  const { server, image } = await registryWithApp(t, { auth: { kind: 'bearer', issuer } });
  const { config } = files(t, { config: dockerConfig(server.host, 'ann', 'password-of-ann') });
  const url = `https://${server.host}`;
  const label = `docker-config ${server.host} (${config})`;

  const { code, out, err } = await run(['inspect', '--verbose', '--docker-config', config, image]);
  t.strictSame([code, err], [0, '']);
  const listing = out.slice(out.indexOf('Credential sources, in order'));
  t.match(listing, `  docker-config: ${config}\n`);
  const rows = listing
    .slice(listing.indexOf(`\n${image}\n`))
    .split('\n')
    .slice(2, -1)
    .map((line) => line.trim().split(/ {2,}/));
  like(t, rows, [
    ['GET', 'manifest', `${url}/v2/team/app/manifests/v1`, 'anonymous', '401', /^\d+ ms$/],
    ['POST', 'token', `${url}/token`, label, '200', /^\d+ ms$/],
    ['GET', 'manifest', `${url}/v2/team/app/manifests/v1`, label, '200', /^\d+ ms$/],
  ]);
  t.equal(rows.length, 3);

  const json = await run(['inspect', '-v', '-o', 'json', '--docker-config', config, image]);
  t.doesNotThrow(() => JSON.parse(json.out) as unknown, 'standard output has only the results');
  t.match(json.err, `${url}/token`);
});

t.test('an image may have the name of a property of every object', async (t) => {
  const server = await registry(t);
  server.push('library/constructor', 'latest', multi, 'docker.io');
  const { ca } = files(t, { ca: server.ca });
  const proxy = [`--proxies=docker.io=${server.host}`, `--ca-files=${ca}`];
  const { code, out } = await run(['inspect', '--verbose', ...proxy, 'constructor']);
  t.equal(code, 0);
  t.match(out, /\nconstructor\n {2}GET +manifest .* 200 /);
});

t.test('sources are listed with their problems', async (t) => {
  const { image } = await registryWithApp(t);
  const { directory, ...paths } = files(t, {
    'creds/broken.example.toml': 'user = "u"\nsecret = ',
    'config.json': '{"auths": {"broken.example": {"auth": "%%%"}}}',
    'secret.json': pullSecret(dockerConfig('other.example', 'bob', 'password-of-bob')),
  });
  const logins = [`--creds-dir=${directory}/creds`, `--docker-config=${paths['config.json']}`];
  const secrets = `--pull-secret=${paths['secret.json']}`;
  const { code, out, err } = await run(['inspect', '--verbose', ...logins, secrets, image]);
  t.equal(code, 0);
  const listed = [...out.matchAll(/^ {2}([a-z-]+): /gm)].map(([, name]) => name);
  t.strictSame(listed.slice(0, 3), ['pull-secret', 'registry-toml', 'docker-config'], 'in order of use');
  t.match(out, /registry-toml: .*\n    ignored: .*broken\.example\.toml/);
  t.match(out, /docker-config: .*\n    ignored: .*config\.json/);
  const warning = /^archwright: warn: some credentials are not used: .*broken\.example\.toml/m;
  like(t, err, warning);
  for (const [flag, kind] of [
    ['--creds-dir', 'directory'],
    ['--docker-config', 'file'],
  ] as const) {
    const missing = `${directory}/none`;
    const quiet = await run(['inspect', `${flag}=${missing}`, image]);
    t.equal(quiet.code, 0, 'the image needs none');
    t.ok(quiet.err.includes(`origin ${missing}, problem there is no such ${kind}`), 'without --verbose too');
  }
});

t.test('no password is printed', async (t) => {
  const passwords = {
    docker: 'docker-Pa55/word+of ann',
    toml: 'toml-Pa55"word%of\\\\ann',
    secret: 'secret-Pa55wörd-of-ann',
    legacy: 'legacy-Pa55word-of-ann',
  };
  // No credential is accepted, so each one is tried.
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'another-password' } } });
  const issuer = createIssuer({ users: { ann: 'another-password' } });
  const bearer = await registry(t, { auth: { kind: 'bearer', issuer } });
  const { directory } = files(t, {
    'config.json': JSON.stringify({
      auths: Object.fromEntries(
        [server.host, bearer.host].map((host) => [host, { username: 'ann', password: passwords.docker }]),
      ),
    }),
    [`creds/${server.host}.toml`]: `user = "ann"\nsecret = "${passwords.toml.replaceAll('"', '\\"')}"\n`,
    'secret.json': pullSecret(dockerConfig(server.host, 'ann', passwords.secret)),
    '.dockercfg': JSON.stringify({ [server.host]: { username: 'ann', password: passwords.legacy } }),
  });
  const args = [
    `--creds-dir=${directory}/creds`,
    `--docker-config=${directory}/config.json`,
    ...['secret.json', '.dockercfg'].map((name) => `--pull-secret=${directory}/${name}`),
    '--log-level=trace',
    `${server.host}/team/app:v1`,
    `${bearer.host}/team/app:v1`,
  ];
  for (const output of ['table', 'json']) {
    const { code, out, err } = await run(['inspect', '--verbose', '-o', output, ...args]);
    t.equal(code, 1);
    const printed = out + err;
    t.match(printed, /registry-toml .*\.toml/, 'the credentials were tried');
    for (const [name, password] of Object.entries(passwords)) {
      const forms = [
        password,
        JSON.stringify(password).slice(1, -1),
        encodeURIComponent(password),
        Buffer.from(`ann:${password}`).toString('base64'),
        Buffer.from(password).toString('base64').replace(/=+$/, ''),
      ];
      for (const form of forms) t.notOk(printed.includes(form), `${name} in ${output}`);
    }
  }
  const tried = server.requests.filter(({ authorization }) => authorization?.scheme === 'basic');
  t.equal(tried.length, 8, 'four credentials, twice');
});
