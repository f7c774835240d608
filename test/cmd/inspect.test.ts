import t from 'tap';
import { openInspection } from '../../cmd/wiring/inspection.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { startTestAgent, type Answer } from '../daemon/support.ts';
import { silentLog } from '../fleet/support.ts';
import { helmChart, image, multiArch } from '../support/registry/content.ts';
import { run } from './run.ts';
import { child, dockerConfig, files, registry, resultsIn } from './world.ts';

const multi = multiArch(['linux/amd64', 'linux/arm64', 'linux/arm/v7'], { attestations: true });
const single = image('linux/s390x', { flavor: 'docker' });

t.test('the results are those of the agent', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  server.push('team/old', 'v1', single);
  const images = [
    `${server.host}/team/app:v1`,
    'Not:An:Image',
    `${server.host}/team/old:v1`,
    `${server.host}/gone`,
  ];
  const inspection = await openInspection({
    configuration: defaultConfiguration,
    dockerConfigs: 'none',
    env: {},
    log: silentLog,
  });
  t.teardown(() => inspection.close());
  const { post } = await startTestAgent(t, { inspector: inspection.inspector });
  const asked = { images: images.map((image) => ({ image, pullPolicy: 'Always' })), deadlineMs: 5000 };
  const agent = (await post(asked)).json as Answer;

  const { code, out } = await run(['inspect', '--output', 'json', ...images]);
  t.equal(code, 1, 'some were not found');
  t.same(Object.keys(JSON.parse(out) as object), ['results']);
  const undated = (facts: ImageFacts) => ({ ...facts, freshUntil: '' });
  const inOrder = images.flatMap((image) => agent.results.find((facts) => facts.image === image) ?? []);
  t.strictSame(resultsIn(out).map(undated), inOrder.map(undated));
  t.same(
    resultsIn(out).map(({ image, error }) => [image, error?.code]),
    [
      [images[0], undefined],
      [images[1], 'invalid-reference'],
      [images[2], undefined],
      [images[3], 'not-found'],
    ],
    'in the order asked',
  );
});

t.test('a table for people', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  server.push('team/old', 'v1', single);
  const { code, out, err } = await run([
    'inspect',
    `${server.host}/team/app:v1`,
    `${server.host}/team/old:v1`,
  ]);
  t.equal(code, 0);
  t.equal(err, '');
  const digest = (text: string) => text.slice('sha256:'.length, 'sha256:'.length + 12);
  const rows = out.split('\n').map((line) => line.split(/ {2,}/));
  t.same(rows, [
    ['IMAGE', 'KIND', 'DIGEST', 'SOURCE', 'CREDENTIAL', 'ENDPOINT', 'PLATFORMS'],
    [
      `${server.host}/team/app:v1`,
      'OCI index',
      digest(multi.digest),
      'registry',
      'anonymous',
      server.host,
      'linux/amd64 linux/arm64 linux/arm/v7',
    ],
    [
      `${server.host}/team/old:v1`,
      'Docker image',
      digest(single.digest),
      'registry',
      'anonymous',
      server.host,
      'linux/s390x',
    ],
    [''],
  ]);
});

t.test('errors come with what to do', async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'pass-of-ann' } } });
  server.push('team/chart', 'v1', helmChart());
  const open = await registry(t);
  open.push('team/chart', 'v1', helmChart());
  const { code, out } = await run([
    'inspect',
    `${server.host}/team/chart:v1`,
    `${open.host}/team/none:v1`,
    `${open.host}/team/chart:v1`,
    'team/APP',
  ]);
  t.equal(code, 1);
  const lines = out.split('\n');
  t.match(lines[1], /unauthorized$/);
  t.match(lines[2], /not-found$/);
  t.match(lines[3], /not-an-image$/);
  t.match(lines[4], /invalid-reference$/);
  const [, ...errors] = lines.slice(5);
  t.match(errors[0], /unauthorized: .*give the pod a pull secret, or the node a credential/);
  t.match(errors[1], /not-found: .*check the name and the tag/);
  t.match(errors[2], /not-an-image: .*artifact without platforms/);
  t.match(errors[3], /invalid-reference: .*lowercase/);
});

t.test('an override is the source, and no registry is asked', async (t) => {
  const { 'archwright.toml': config } = files(t, {
    'archwright.toml':
      'imageOverrides = [{ match = "nowhere.example/**", architectures = ["arm64"] }, { match = "any.example/**", architectures = [] }]',
  });
  const images = ['nowhere.example/team/app:1', 'any.example/data:1'];
  const json = await run(['inspect', '-o', 'json', '--config', config, ...images]);
  t.equal(json.code, 0);
  t.same(
    resultsIn(json.out).map(({ source }) => source),
    ['override', 'override'],
  );
  const { code, out } = await run(['inspect', '--verbose', '--config', config, ...images]);
  t.equal(code, 0);
  t.match(out, /nowhere\.example\/team\/app:1 +- +- +override +- +- +linux\/arm64 windows\/arm64\n/);
  t.match(out, /any\.example\/data:1 +- +- +override +- +- +any\n/);
  t.match(out, /no request: imageOverrides applies/);
});

t.test('where credentials come from', async (t) => {
  const users = { ann: 'pass-of-ann' };
  const server = await registry(t, { auth: { kind: 'basic', users } });
  server.push('team/app', 'v1', multi);
  const login = dockerConfig(server.host, 'ann', users.ann);
  const { directory } = files(t, {
    'login/config.json': login,
    'node/var/lib/kubelet/config.json': login,
    'named.json': login,
    [`creds/${server.host}.toml`]: `user = "ann"\nsecret = "${users.ann}"\n`,
    empty: '{}',
  });
  const image = `${server.host}/team/app:v1`;
  const cases: [
    what: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    source: string | undefined,
  ][] = [
    ['none', [], {}, undefined],
    ["the person's docker login", [], { DOCKER_CONFIG: `${directory}/login` }, 'docker-config'],
    ['--docker-config', ['--docker-config', `${directory}/named.json`], {}, 'docker-config'],
    ['--creds-dir', ['--creds-dir', `${directory}/creds`], {}, 'registry-toml'],
    ["the node's docker config", ['--host-root', `${directory}/node`], {}, 'docker-config'],
    [
      'below a host root no login of a person',
      ['--host-root', `${directory}/creds`],
      { DOCKER_CONFIG: `${directory}/login` },
      undefined,
    ],
    [
      'a named file in place of the login',
      ['--docker-config', `${directory}/empty`],
      { DOCKER_CONFIG: `${directory}/login` },
      undefined,
    ],
    [
      'before the docker config',
      ['--creds-dir', `${directory}/creds`, '--docker-config', `${directory}/named.json`],
      {},
      'registry-toml',
    ],
  ];
  for (const [what, args, env, source] of cases) {
    const { code, out } = await run(['inspect', '-o', 'json', ...args, image], { env });
    t.equal(code, source === undefined ? 1 : 0, what);
    const [facts] = resultsIn(out);
    if (source === undefined) t.equal(facts?.error?.code, 'unauthorized', what);
    else t.equal(facts?.credentialSource, source, what);
  }
});

t.test('a relative docker config is found from where the person is', async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'pass-of-ann' } } });
  server.push('team/app', 'v1', multi);
  const { directory } = files(t, { 'mine.json': dockerConfig(server.host, 'ann', 'pass-of-ann') });
  const before = process.cwd();
  process.chdir(directory);
  t.teardown(() => process.chdir(before));
  const { code, out } = await run(['inspect', '--docker-config', 'mine.json', `${server.host}/team/app:v1`]);
  t.equal(code, 0, out);
});

t.test('many images at once, each asked for once', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  const images = Array.from({ length: 40 }, () => `${server.host}/team/app:v1`);
  const { code, out } = await run(['inspect', '-o', 'json', ...images]);
  t.equal(code, 0);
  t.equal(resultsIn(out).length, 40);
  t.ok(server.requests.length < 10, `${server.requests.length} requests`);
});

t.test('a registry that never answers', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  server.faults.add(/manifests/, { kind: 'hold' });
  const image = `${server.host}/team/app:v1`;

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

t.test('a credential that was named and is not there is told without --verbose', async (t) => {
  const server = await registry(t);
  server.push('team/app', 'v1', multi);
  const { directory } = files(t, {
    'creds/a.example.toml': 'user = "u"\nsecret = "s"\n',
    'config.json': '{}',
  });
  const cases: readonly (readonly [flag: string, told: string])[] = [
    [
      `--creds-dir=${directory}/cred`,
      `origin ${directory}/cred, problem there is no such directory; did you mean ${directory}/creds?`,
    ],
    [
      `--docker-config=${directory}/confg.json`,
      `origin ${directory}/confg.json, problem there is no such file; did you mean ${directory}/config.json?`,
    ],
  ];
  for (const [flag, told] of cases) {
    const { code, err } = await run(['inspect', flag, `${server.host}/team/app:v1`]);
    t.equal(code, 0, 'the image needs none');
    t.match(err, /^archwright: warn: some credentials are not used: /);
    t.ok(err.includes(told), err);
  }
});
