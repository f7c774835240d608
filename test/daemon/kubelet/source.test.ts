import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { answering, configText, creds, echoing, nodeDir, openSource, writePlugin } from './support.ts';

t.test('a plugin runs only for matching repositories', async (t) => {
  const { dir, bin, config } = nodeDir(
    t,
    configText({ name: 'p', matchImages: ['*.example/team', 'other.example'] }),
  );
  const counter = join(dir, 'runs');
  writePlugin(
    join(bin, 'p'),
    answering(
      { auth: { 'a.example/team': { username: 'u', password: 'pass' } }, cacheDuration: '0s' },
      `process.getBuiltinModule('node:fs').appendFileSync(${JSON.stringify(counter)}, '.');`,
    ),
  );
  const { source, found, problems } = await openSource(t, { config, binDir: bin });
  t.equal(source.name, 'credential-provider');
  t.same(await found('a.example/team/app'), ['u:pass (plugin p, a.example/team)']);
  t.same(await found('a.example/other'), []);
  t.same(await found('b.a.example/team/app'), []);
  t.same(problems(), []);
});

t.test('one keyring for all plugins: longer keys first, then the order of the configuration', async (t) => {
  const { bin, config } = nodeDir(t, configText({ name: 'z' }, { name: 'a' }, { name: 'long' }));
  writePlugin(join(bin, 'z'), answering(creds('registry.example', 'z')));
  writePlugin(join(bin, 'a'), answering(creds('https://registry.example/v2/', 'a')));
  writePlugin(join(bin, 'long'), answering(creds('registry.example/app', 'long')));
  const { found } = await openSource(t, { config, binDir: bin });
  t.same(await found('registry.example/app'), [
    'long:pass (plugin long, registry.example/app)',
    'z:pass (plugin z, registry.example)',
    'a:pass (plugin a, registry.example)',
  ]);
});

t.test('a plugin that needs tokens is left out with the reason', async (t) => {
  const { bin, config } = nodeDir(
    t,
    configText(
      {
        name: 'p',
        tokenAttributes: {
          serviceAccountTokenAudience: 'a',
          cacheType: 'Token',
          requireServiceAccount: true,
        },
      },
      { name: 'q' },
    ),
  );
  for (const name of ['p', 'q']) writePlugin(join(bin, name), answering(creds('registry.example', name)));
  const { found, problems } = await openSource(t, { config, binDir: bin });
  t.same(await found('registry.example/app'), ['q:pass (plugin q, registry.example)']);
  t.match(problems(), [/^plugin p: left out: it needs a token of the pod’s service account/]);
});

t.test('with tokens, a plugin runs for the pod’s service account', async (t) => {
  const { bin, config } = nodeDir(
    t,
    configText(
      { name: 'first' },
      {
        name: 'p',
        tokenAttributes: {
          serviceAccountTokenAudience: 'reg.example',
          cacheType: 'ServiceAccount',
          requireServiceAccount: true,
          requiredServiceAccountAnnotationKeys: ['team/robot'],
        },
      },
      { name: 'last' },
    ),
  );
  for (const name of ['first', 'last']) {
    writePlugin(join(bin, name), answering(creds('registry.example', name)));
  }
  writePlugin(join(bin, 'p'), echoing('registry.example'));
  const { source, problems, lines } = await openSource(t, {
    config,
    binDir: bin,
    tokens: {
      serviceAccount: (namespace, name) =>
        name === 'missing'
          ? Promise.reject(new Error('no such account'))
          : Promise.resolve({
              uid: `${namespace}/${name}`,
              annotations: name === 'plain' ? {} : { 'team/robot': name },
            }),
      tokenFor: (_, uid, audience) => Promise.resolve(secret(`${uid} for ${audience}`)),
    },
  });
  const found = async (name?: string) =>
    (
      await source.lookup(
        'registry.example/app',
        undefined,
        name === undefined ? undefined : { namespace: 'team', name },
      )
    ).map(
      ({ credential: { username, password }, source: kind, origin }) =>
        `${kind} ${username}:${reveal(password)} (${origin})`,
    );
  const shared = (name: string) => `credential-provider ${name}:pass (plugin ${name})`;
  t.same(await found('a'), [
    shared('first'),
    'service-account a:got team/a for reg.example (plugin p for team/a)',
    shared('last'),
  ]);
  t.same((await found('b'))[1], 'service-account b:got team/b for reg.example (plugin p for team/b)');
  t.same(await found('plain'), [shared('first'), shared('last')], 'without the annotation');
  t.same(await found(), [shared('first'), shared('last')], 'without an account');
  t.same(problems(), []);
  t.equal(source.dependsOnServiceAccount?.('registry.example/app'), true);
  t.equal(source.dependsOnServiceAccount?.('other.example/app'), false);
  t.same(await found('missing'), [shared('first'), shared('last')]);
  t.match(problems(), [
    /^plugin p: for image registry.example\/app: Failed to get service account team\/missing: no such account$/,
  ]);
  t.notMatch(lines.join(''), /for reg\.example/);
});

t.test('fingerprints depend on tokens', async (t) => {
  const { bin, config } = nodeDir(
    t,
    configText({
      name: 'p',
      tokenAttributes: { serviceAccountTokenAudience: 'a', cacheType: 'Token', requireServiceAccount: true },
    }),
  );
  writePlugin(join(bin, 'p'), answering(creds('registry.example', 'p')));
  const never = () => Promise.reject(new Error('never'));
  const tokens = { serviceAccount: never, tokenFor: never };
  const may = await openSource(t, { config, binDir: bin, tokens });
  const mayNot = await openSource(t, { config, binDir: bin, noTokens: 'the setting is off' });
  t.not(may.source.fingerprint(), mayNot.source.fingerprint());
  t.equal(mayNot.source.dependsOnServiceAccount?.('registry.example/app'), false);
  t.match(mayNot.problems(), [/may not ask for one; .* \(the setting is off\)$/]);
  t.match(await may.source.describe(), [
    {},
    { where: 'plugin p', state: 'used', what: /token/, differs: [/bound to a pod/] },
    {},
  ]);
});

t.test('an aborted caller does not stop a run for other callers', async (t) => {
  const { dir, bin, config } = nodeDir(t, configText({ name: 'p' }));
  const gate = join(dir, 'go');
  const started = join(dir, 'started');
  writePlugin(
    join(bin, 'p'),
    answering(
      creds('registry.example', 'u'),
      `const fs = process.getBuiltinModule('node:fs'); fs.appendFileSync(${JSON.stringify(started)}, '.');
       while (!fs.existsSync(${JSON.stringify(gate)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);`,
    ),
  );
  const { found } = await openSource(t, { config, binDir: bin });
  const signal = AbortSignal.timeout(200);
  await t.rejects(found('registry.example/app', signal), { name: 'TimeoutError' });
  const second = found('registry.example/app');
  writeFileSync(gate, '');
  t.same(await second, ['u:pass (plugin p, registry.example)']);
  rmSync(started);
  t.same(await found('registry.example/app'), ['u:pass (plugin p, registry.example)']);
  t.throws(() => rmSync(started), { code: 'ENOENT' }, 'cached');
});

t.test('closing kills running plugins', async (t) => {
  const { bin, config } = nodeDir(t, configText({ name: 'p' }));
  writePlugin(join(bin, 'p'), 'while :; do sleep 60; done', '/bin/sh');
  const { source, found, problems } = await openSource(t, { config, binDir: bin });
  const running = found('registry.example/app');
  await source.close();
  t.same(await running, []);
  t.same(problems(), [], 'not a failure of the plugin');
});
