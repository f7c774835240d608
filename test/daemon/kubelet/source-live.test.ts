import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { answering, configText, creds, nodeDir, openSource, until, writePlugin } from './support.ts';

t.test('missing or unsafe programs are left out with the reason until they are fixed', async (t) => {
  const { bin, config } = nodeDir(t, configText({ name: 'p' }));
  const { source, found, problems, lines } = await openSource(t, { config, binDir: bin, debounceMs: 5 });
  const missing = source.fingerprint();
  t.match(problems(), [/^plugin p: left out: plugin binary executable .*\/bin\/p did not exist$/]);
  t.same(await found('registry.example/app'), []);
  writePlugin(join(bin, 'p'), answering(creds('registry.example', 'u')));
  t.ok(await until(() => problems().length === 0));
  t.same(await found('registry.example/app'), ['u:pass (plugin p, registry.example)']);
  t.not(source.fingerprint(), missing);
  chmodSync(join(bin, 'p'), 0o777);
  await source.refresh();
  t.match(problems(), [/left out: .*can be written by others \(mode 0777\)/]);
  t.same(await found('registry.example/app'), []);
  t.equal(lines.length, 2, 'one log line each');
});

t.test('the configuration is live; if it breaks, the last good one stays in force', async (t) => {
  const { dir, bin, config } = nodeDir(t, configText({ name: 'p' }));
  const counter = join(dir, 'runs');
  const count = `process.getBuiltinModule('node:fs').appendFileSync(${JSON.stringify(counter)}, '.');`;
  writePlugin(join(bin, 'p'), answering(creds('registry.example', 'u'), count));
  const { source, found, problems, lines } = await openSource(t, { config, binDir: bin, debounceMs: 5 });
  const first = source.fingerprint();
  t.same(await found('registry.example/app'), ['u:pass (plugin p, registry.example)']);

  writeFileSync(config, '{"kind":"Cred');
  t.ok(await until(() => problems().length > 0));
  t.match(problems(), [
    /config\.json: error decoding config .* is not valid JSON; the last good one stays in force$/,
  ]);
  await source.refresh();
  t.equal(lines.length, 1, 'one log line');
  t.same(await found('registry.example/app'), ['u:pass (plugin p, registry.example)']);
  t.equal(source.fingerprint(), first);

  writeFileSync(config, configText({ name: 'p', matchImages: [] }));
  t.ok(await until(() => /failed to validate/.test(problems().join(''))));
  t.match(problems(), [/providers\.matchImages: Required value: at least 1 item in matchImages is required/]);

  writeFileSync(config, configText({ name: 'p' }, { name: 'p', matchImages: ['a'] }));
  t.ok(await until(() => /duplicate provider name "p"/.test(problems().join(''))));

  writeFileSync(config, configText({ name: 'p', matchImages: ['registry.example', 'new.example'] }));
  t.ok(await until(() => problems().length === 0));
  t.same(await found('new.example/app'), [], 'its key does not match');
  t.not(source.fingerprint(), first);

  writeFileSync(config, configText({ name: 'p' }));
  await source.refresh();
  t.equal(source.fingerprint(), first, 'equal for equal content');
});

t.test('unchanged providers keep their cache', async (t) => {
  const { dir, bin, config } = nodeDir(
    t,
    configText({ name: 'p' }, { name: 'q', matchImages: ['q.example'] }),
  );
  const counter = join(dir, 'runs');
  const count = `process.getBuiltinModule('node:fs').appendFileSync(${JSON.stringify(counter)}, '.');`;
  writePlugin(join(bin, 'p'), answering(creds('registry.example', 'u'), count));
  writePlugin(join(bin, 'q'), answering(creds('q.example', 'u')));
  const { source, found } = await openSource(t, { config, binDir: bin });
  await found('registry.example/app');
  rmSync(counter);
  writeFileSync(config, configText({ name: 'q', matchImages: ['r.example'] }, { name: 'p' }));
  await source.refresh();
  t.same(await found('registry.example/app'), ['u:pass (plugin p, registry.example)']);
  t.throws(() => rmSync(counter), { code: 'ENOENT' }, 'it did not run again');
});

t.test('a missing configuration is a problem until it appears', async (t) => {
  const { dir, bin } = nodeDir(t, '{}');
  const config = join(dir, 'later.yaml');
  writePlugin(join(bin, 'p'), answering(creds('registry.example', 'u')));
  const { source, found, problems } = await openSource(t, { config, binDir: bin });
  t.same(problems(), [`${config}: unable to access path ${JSON.stringify(config)}: there is no such file`]);
  t.same(await found('registry.example/app'), []);
  t.equal(typeof source.fingerprint(), 'string');
  writeFileSync(config, configText({ name: 'p' }));
  await source.refresh();
  t.same(await found('registry.example/app'), ['u:pass (plugin p, registry.example)']);
});

t.test('equal nodes have equal fingerprints, without running plugins or containing secrets', async (t) => {
  const text = configText({ name: 'p', env: [{ name: 'PASSWORD', value: 'hunter22' }] });
  const prints = await Promise.all(
    ['', '// another architecture'].map(async (comment, index) => {
      const { dir, bin, config } = nodeDir(t, text);
      const own = join(dir, `config-${index}.yaml`);
      writeFileSync(own, text);
      writePlugin(
        join(bin, 'p'),
        `${comment}\nprocess.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(join(dir, 'ran'))}, '')`,
      );
      const { source } = await openSource(t, { config, binDir: bin });
      t.throws(() => rmSync(join(dir, 'ran')), { code: 'ENOENT' });
      return source.fingerprint();
    }),
  );
  t.equal(prints[0], prints[1]);
  t.match(prints[0], /^[\w-]{43}$/);
});
