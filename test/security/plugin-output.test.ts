/** Attack: control characters in the output of a plugin, to inject headers or terminal sequences. */
import { join } from 'node:path';
import { directory, write } from '../cmd/world.ts';
import t from 'tap';
import { run } from '../cmd/run.ts';
import { createCa } from '../support/certificates.ts';
import { multiArch } from '../support/registry/content.ts';
import { startRegistry } from '../support/registry/client.ts';
import { pluginConfig, writePlugin } from './support.ts';

const smuggled = [
  'ann\r\nX-Evil: 1',
  'ann\n\nGET /evil HTTP/1.1',
  'ann\u0000',
  '\u001b[2Jann',
  'ann\u2028\u202e',
];

t.test('control characters in user names and passwords do not reach headers or a terminal', async (t) => {
  for (const [index, text] of smuggled.entries()) {
    const user = { username: text, password: text };
    const users = { [text]: text };
    const ca = await createCa();
    const registry = await startRegistry(t, { tls: ca, auth: { kind: 'basic', users } });
    registry.push('team/app', 'v1', multiArch(['linux/amd64']));
    const root = directory(t);
    write(root, { 'plugins.json': pluginConfig([registry.host]), 'ca.pem': ca.cert });
    const plugins = directory(t);
    writePlugin(plugins, { [registry.host]: user, [`\u001b[31m${registry.host}`]: user });
    const { code, out, err } = await run([
      'inspect',
      '--verbose',
      `--kubelet-config-config=${join(root, 'plugins.json')}`,
      `--kubelet-config-bin-dir=${plugins}`,
      `--ca-files=${join(root, 'ca.pem')}`,
      `${registry.host}/team/app:v1`,
    ]);
    // In Basic authentication, a user name ends at its first colon.
    t.equal(code, user.username.includes(':') ? 1 : 0, `${index}: ${out}${err}`);
    t.notOk(registry.requests.some(({ headers, path }) => 'x-evil' in headers || path === '/evil'));
    // oxlint-disable-next-line no-control-regex
    t.notMatch(out + err, /[\u0000-\u0009\u000b-\u001f\u2028\u202e]|X-Evil/);
  }
});
