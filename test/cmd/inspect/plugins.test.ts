/** The kubelet's credential provider plugins, from the settings to the registry. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { answering, configText, writePlugin } from '../../daemon/kubelet/support.ts';
import { run } from '../run.ts';
import { files, privateApp, resultsIn } from '../world.ts';
import { like } from '../../support/like.ts';

const password = 'password-of-ann';

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
