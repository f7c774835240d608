import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import type { ServiceAccountName } from '../../../src/credentials/credential.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import {
  answering,
  configText,
  creds,
  echoing,
  execV1,
  marking,
  nodeDir,
  openNode,
  openSource,
  sh,
  tokenAttributes,
  writePlugin,
} from './support.ts';
import { until } from '../../support/until.ts';
import { like } from '../../support/like.ts';

const app = 'registry.example/app';
const answer = (user: string, key = 'registry.example') => answering(creds(key, user));
const credential = (user: string, plugin = user) => `${user}:pass (plugin ${plugin}, registry.example)`;

t.test('keys of all plugins are sorted by length, then by the order of the configuration', async (t) => {
  const { found } = await openNode(t, [{ name: 'z' }, { name: 'a' }, { name: 'long' }], {
    z: answer('z'),
    a: answer('a', 'https://registry.example/v2/'),
    long: answer('long', 'registry.example/app'),
  });
  const long = 'long:pass (plugin long, registry.example/app)';
  t.strictSame(await found(app), [long, credential('z'), credential('a')]);
});

t.test('with tokens, a plugin runs for the pod’s service account', async (t) => {
  const attributes = {
    ...tokenAttributes,
    cacheType: 'ServiceAccount',
    requiredServiceAccountAnnotationKeys: ['team/robot'],
  };
  const { source, problems, lines } = await openNode(
    t,
    [{ name: 'first' }, { name: 'p', tokenAttributes: attributes }, { name: 'last' }],
    { first: answer('first'), last: answer('last'), p: echoing('registry.example') },
    {
      tokens: {
        serviceAccount: (namespace, name) =>
          Promise.resolve({ uid: `${namespace}/${name}`, annotations: { 'team/robot': name } }),
        tokenFor: (_, uid, audience) => Promise.resolve(secret(`${uid} for ${audience}`)),
      },
    },
  );
  const found = async (account?: ServiceAccountName) => {
    const matched = await source.lookup(app, undefined, account);
    return matched.map(({ credential, source: kind, origin }) => {
      return `${kind} ${credential.username}:${reveal(credential.password)} (${origin})`;
    });
  };
  const shared = (name: string) => `credential-provider ${name}:pass (plugin ${name})`;
  const own = (name: string) =>
    `service-account ${name}:got team/${name} for reg.example (plugin p for team/${name})`;
  for (const name of ['a', 'b'])
    t.strictSame(await found({ namespace: 'team', name }), [shared('first'), own(name), shared('last')]);
  t.strictSame(await found(), [shared('first'), shared('last')], 'without an account');
  t.strictSame(problems(), []);
  t.notMatch(lines.join(''), /for reg\.example/);
});

t.test('without tokens a plugin that needs them is skipped, and the fingerprint differs', async (t) => {
  const plugins = { p: answer('p'), q: answer('q') };
  const providers = [{ name: 'p', tokenAttributes }, { name: 'q' }];
  const never = () => Promise.reject(new Error('never'));
  const tokens = { serviceAccount: never, tokenFor: never };
  const { config, bin: binDir, source } = await openNode(t, providers, plugins, { tokens });
  const without = await openSource(t, { config, binDir, noTokens: 'the setting is off' });
  t.not(source.fingerprint(), without.source.fingerprint());
  t.strictSame(await without.found(app), [credential('q')]);
  like(t, without.problems(), [
    /^plugin p: left out: it needs a token .* may not request one; .* \(the setting is off\)$/,
  ]);
  like(t, (await source.describe())[1], { where: 'plugin p', state: 'used', differs: [/bound to a pod/] });
  await source.lookup(app, undefined, { namespace: 'team', name: 'a' });
  const message = /^for image registry\.example\/app: Failed to get service account team\/a: never$/;
  like(t, source.problems(), [{ origin: 'plugin p', message }]);
});

t.test('a lookup says why the plugins for its image have no usable credential', async (t) => {
  const fails = sh('echo no network >&2; exit 1');
  const empty = answering({ auth: { 'empty.example': { username: '', password: '' } }, cacheDuration: '1h' });
  const others = ['none', 'empty'].map((name) => ({ name, matchImages: [`${name}.example`] }));
  const { reasons } = await openNode(t, [{ name: 'fails' }, ...others], { fails, empty });
  for (let times = 0; times < 2; times += 1) {
    like(t, await reasons(app), [/^plugin fails: error execing .*: exit status 1: no network$/]);
    like(t, await reasons('none.example/app'), [
      /^plugin none: left out: plugin binary executable .* did not exist; check kubeletConfig\.binDir$/,
    ]);
    like(t, await reasons('empty.example/app'), [
      /^plugin empty: the plugin returned a login without user name/,
    ]);
  }
  t.strictSame(await reasons('other.example/app'), [], 'no plugin is for it');
  const unread = await openSource(t, { config: '/missing.yaml', binDir: '/bin' });
  like(t, await unread.reasons(app), [/^\/missing\.yaml: unable to access path/]);
});

t.test('closing kills running plugins', async (t) => {
  const { source, found, problems } = await openNode(t, [{ name: 'p' }], {
    p: sh('while :; do sleep 60; done'),
  });
  const running = found(app);
  await source.close();
  t.strictSame(await running, []);
  t.strictSame(problems(), [], 'not a failure of the plugin');
});

t.test('missing and unsafe programs are skipped and reported until they are fixed', async (t) => {
  const { bin, source, found, problems, lines } = await openNode(t, [{ name: 'p' }], {}, { debounceMs: 5 });
  const missing = source.fingerprint();
  like(t, problems(), [
    /^plugin p: left out: plugin binary executable .*\/bin\/p did not exist; check kubeletConfig\.binDir$/,
  ]);
  t.strictSame(await found(app), []);
  writePlugin(join(bin, 'p'), answer('p'));
  await until(() => problems().length === 0);
  t.strictSame(await found(app), [credential('p')]);
  t.not(source.fingerprint(), missing);
  chmodSync(join(bin, 'p'), 0o777);
  await source.refresh();
  like(t, problems(), [/left out: .*can be written by others \(mode 0777\)/]);
  t.strictSame(await found(app), []);
  t.equal(lines.length, 2, 'one log line each');
});

t.test('a changed configuration applies; if it breaks, the last good one stays in force', async (t) => {
  const plugins = { p: answer('p') };
  const node = await openNode(t, [{ name: 'p' }], plugins, { debounceMs: 5 });
  const { config, source, found, problems, lines } = node;
  const first = source.fingerprint();
  t.strictSame(await found(app), [credential('p')]);
  const becomes = async (text: string, problem: RegExp) => {
    writeFileSync(config, text);
    await until(() => problem.test(problems().join()), `${problem}`);
  };

  await becomes(
    '{"kind":"Cred',
    /config\.json: error decoding config .* is not valid JSON; the last good one stays in force$/,
  );
  await source.refresh();
  t.equal(lines.length, 1, 'one log line');
  t.strictSame(await found(app), [credential('p')]);
  t.equal(source.fingerprint(), first);

  await becomes(
    configText({ name: 'p', matchImages: [] }),
    /failed to validate.*providers\.matchImages: Required value: at least 1 item in matchImages is required/,
  );
  await becomes(configText({ name: 'p' }, { name: 'p', matchImages: ['a'] }), /duplicate provider name "p"/);
  await becomes(configText({ name: 'p', matchImages: ['registry.example', 'new.example'] }), /^$/);
  t.strictSame(await found('new.example/app'), [], 'its key does not match');
  t.not(source.fingerprint(), first);

  writeFileSync(config, configText({ name: 'p' }));
  await source.refresh();
  t.equal(source.fingerprint(), first, 'equal for equal content');
});

t.test('unchanged providers keep their cache', async (t) => {
  const counter = join(t.testdir(), 'runs');
  const { config, source, found } = await openNode(
    t,
    [{ name: 'p' }, { name: 'q', matchImages: ['q.example'] }],
    { p: answering(creds('registry.example', 'p'), marking(counter)), q: answer('q', 'q.example') },
  );
  await found(app);
  rmSync(counter);
  writeFileSync(config, configText({ name: 'q', matchImages: ['r.example'] }, { name: 'p' }));
  await source.refresh();
  t.strictSame(await found(app), [credential('p')]);
  t.notOk(existsSync(counter), 'it did not run again');
});

t.test(
  'equal nodes have equal fingerprints; no plugin runs for them, and they contain no secret',
  async (t) => {
    const prints: string[] = [];
    for (const comment of ['', '// another architecture']) {
      const ran = join(t.testdir(), 'ran');
      const providers = [{ name: 'p', env: [{ name: 'PASSWORD', value: 'hunter22' }] }];
      const { source } = await openNode(t, providers, { p: `${comment}\n${marking(ran)}` });
      t.notOk(existsSync(ran));
      prints.push(source.fingerprint());
    }
    t.equal(prints[0], prints[1]);
    t.match(prints[0], /^[\w-]{43}$/);
  },
);

t.test('credentials for another registry are ignored', async (t) => {
  const keys = ['evil.example', '*', 'registry.example/other', 'registry.example:443'];
  const auth = Object.fromEntries(keys.map((key) => [key, { username: 'evil', password: 'pass' }]));
  const { found } = await openNode(t, [{ name: 'p' }], { p: answering({ auth }) });
  t.strictSame(await found(app), []);
});

t.test('a failed plugin does not affect the others', async (t) => {
  const { found, problems, lines } = await openNode(t, [{ name: 'bad' }, { name: 'good' }], {
    bad: sh('echo "secret=hunter2hunter2 is wrong" >&2; exit 1'),
    good: answer('good'),
  });
  t.strictSame(await found(app), [credential('good')]);
  const message =
    'error execing credential provider plugin bad for image registry.example/app: exit status 1: secret=[secret] is wrong';
  t.strictSame(problems(), [`plugin bad: ${message}`]);
  await found(app);
  t.equal(lines.length, 1, 'it is backed off after a failure');
  like(t, JSON.parse(lines[0] ?? ''), { plugin: 'bad', image: app, problem: message });
  t.notMatch(lines.join(''), /hunter2/);
});

t.test('a plugin does not get the agent’s environment', async (t) => {
  const env = [
    { name: 'B', value: 'from config' },
    { name: 'C', value: '' },
  ];
  const { bin, config } = nodeDir(t, configText({ name: 'p', env }));
  writePlugin(
    join(bin, 'p'),
    sh(
      `env=$(tr '\\0' '|' < /proc/$$/environ)\n` +
        `echo '{"kind":"CredentialProviderResponse","apiVersion":"${execV1}","cacheKeyType":"Image",` +
        `"auth":{"registry.example":{"username":"'"$env"'","password":""}}}'`,
    ),
  );
  const ours = ['KUBERNETES_SERVICE_HOST=10.0.0.1', 'NODE_OPTIONS=--no-warnings', 'AWS_SESSION_TOKEN=ours'];
  const driver = fileURLToPath(new URL('print-lookup.ts', import.meta.url));
  const args = ['-i', ...ours, 'HOME=/h', process.execPath, driver, config, bin, app];
  const printed = execFileSync('/usr/bin/env', args, { encoding: 'utf8' });
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const expected = ['HOME=/root', path, 'A=from setting', 'B=from config', 'C=', ''];
  // If the machine has a kubelet, its variables come first.
  t.match(printed, /A=from setting\|B=from config\|C=\|$/);
  t.notMatch(printed, /KUBERNETES|NODE_OPTIONS|ours/);
  if (!printed.includes('INVOCATION_ID=')) t.equal(printed, expected.join('|'));
});
