import t from 'tap';
import { createIssuer } from '../../support/registry/tokens.ts';
import { run } from '../run.ts';
import { dockerConfig, files, pullSecret, registry, registryWithApp } from '../world.ts';
import { like } from '../../support/like.ts';

t.test('each request and its status are listed', async (t) => {
  const issuer = createIssuer({ users: { ann: 'password-of-ann' } });
  const { server, image } = await registryWithApp(t, { auth: { kind: 'bearer', issuer } });
  const { config } = files(t, { config: dockerConfig(server.host, 'ann', 'password-of-ann') });
  const url = `https://${server.host}`;
  const label = `docker-config ${server.host} (${config})`;

  const { code, out, err } = await run(['inspect', '--verbose', '--docker-config', config, image]);
  t.equal(code, 0);
  t.equal(err, '');
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

t.test('each tried credential is named, and the one that found that the tag is missing', async (t) => {
  const server = await registry(t, { auth: { kind: 'basic', users: { bob: 'password-of-bob' } } });
  const { directory, ...paths } = files(t, {
    [`creds/${server.host}.toml`]: 'user = "bob"\nsecret = "password-of-bob"\n',
    'config.json': dockerConfig(server.host, 'ann', 'password-of-ann'),
    'secret.json': pullSecret(dockerConfig(`${server.host}/team`, 'cid', 'password-of-cid'), {
      name: 'regcred',
      namespace: 'shop',
    }),
  });
  const { code, out } = await run([
    'inspect',
    '--verbose',
    `--creds-dir=${directory}/creds`,
    `--docker-config=${paths['config.json']}`,
    `--pull-secret=${paths['secret.json']}`,
    `${server.host}/team/app:v9`,
  ]);
  t.equal(code, 1);
  const toml = `registry-toml ${server.host} (${directory}/creds/${server.host}.toml)`;
  const rows = out.split('\n').flatMap((line) => {
    const [, purpose, , credential, status] = line.trim().split(/ {2,}/);
    return purpose === 'manifest' ? [[credential, status]] : [];
  });
  t.strictSame(rows, [
    ['anonymous', '401'],
    [`pull-secret ${server.host}/team (shop/regcred)`, '401'],
    [toml, '404'],
    [`docker-config ${server.host} (${paths['config.json']})`, '401'],
  ]);
  const [, failure = ''] = /: not-found: (.*)\n/.exec(out) ?? [];
  t.ok(
    failure.includes(`with the credential ${toml}: check the name and the tag; refused were: pull-secret`),
    out,
  );
});

t.test('sources are listed with their problems', async (t) => {
  const { image } = await registryWithApp(t);
  const { directory, ...paths } = files(t, {
    'creds/broken.example.toml': 'user = "u"\nsecret = ',
    'config.json': '{"auths": {"broken.example": {"auth": "%%%"}}}',
    'secret.json': pullSecret(dockerConfig('other.example', 'bob', 'password-of-bob')),
  });
  const { code, out, err } = await run([
    'inspect',
    '--verbose',
    `--creds-dir=${directory}/creds`,
    `--docker-config=${paths['config.json']}`,
    `--pull-secret=${paths['secret.json']}`,
    image,
  ]);
  t.equal(code, 0);
  const listed = [...out.matchAll(/^ {2}([a-z-]+): /gm)].map(([, name]) => name);
  t.strictSame(listed.slice(0, 3), ['pull-secret', 'registry-toml', 'docker-config'], 'in order of use');
  t.match(out, /registry-toml: .*\n    ignored: .*broken\.example\.toml/);
  t.match(out, /docker-config: .*\n    ignored: .*config\.json/);
  const warning = /^archwright: warn: some credentials are not used: .*broken\.example\.toml/m;
  like(t, err, warning, 'also without --verbose');
});

t.test('no password is printed', async (t) => {
  const passwords = {
    docker: 'docker-Pa55/word+of ann',
    toml: 'toml-Pa55"word%of\\\\ann',
    secret: 'secret-Pa55wörd-of-ann',
    stringData: 'string-data-Pa55word',
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
    'string-data.yaml': [
      'kind: Secret',
      'type: kubernetes.io/dockerconfigjson',
      'metadata: { name: written }',
      'stringData:',
      `  .dockerconfigjson: '${dockerConfig(bearer.host, 'ann', passwords.stringData)}'`,
    ].join('\n'),
    '.dockercfg': JSON.stringify({ [server.host]: { username: 'ann', password: passwords.legacy } }),
  });
  const args = [
    `--creds-dir=${directory}/creds`,
    `--docker-config=${directory}/config.json`,
    ...['secret.json', 'string-data.yaml', '.dockercfg'].map((name) => `--pull-secret=${directory}/${name}`),
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
