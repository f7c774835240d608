import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { answering, configText, creds, execV1, nodeDir, openSource, writePlugin } from './support.ts';

t.test('credentials for another registry are ignored', async (t) => {
  const { bin, config } = nodeDir(t, configText({ name: 'p' }));
  writePlugin(
    join(bin, 'p'),
    answering({
      auth: {
        'evil.example': { username: 'evil', password: 'pass' },
        '*': { username: 'star', password: 'pass' },
        'registry.example/other': { username: 'path', password: 'pass' },
        'registry.example:443': { username: 'port', password: 'pass' },
      },
    }),
  );
  const { found } = await openSource(t, { config, binDir: bin });
  t.same(await found('registry.example/app'), []);
});

t.test('a failed plugin does not affect the others', async (t) => {
  const { bin, config } = nodeDir(t, configText({ name: 'bad' }, { name: 'good' }));
  writePlugin(join(bin, 'bad'), 'echo "secret=hunter2hunter2 is wrong" >&2; exit 1', '/bin/sh');
  writePlugin(join(bin, 'good'), answering(creds('registry.example', 'good')));
  const { found, problems, lines } = await openSource(t, { config, binDir: bin });
  t.same(await found('registry.example/app'), ['good:pass (plugin good, registry.example)']);
  const message =
    'error execing credential provider plugin bad for image registry.example/app: exit status 1: secret=[secret] is wrong';
  t.same(problems(), [`plugin bad: ${message}`]);
  await found('registry.example/app');
  t.equal(lines.length, 1, 'it is backed off after a failure');
  t.match(JSON.parse(lines[0] ?? ''), { plugin: 'bad', image: 'registry.example/app', problem: message });
  t.notMatch(lines.join(''), /hunter2/);
});

t.test('garbage and control characters are neither used nor quoted', async (t) => {
  const outputs = [
    '{"kind":',
    String.raw`\033[31mpass-word`,
    '',
    '[]',
    'null',
    `{"apiVersion":"\\u001b[2Jpass-word"}`,
  ];
  for (const output of outputs) {
    const { bin, config } = nodeDir(t, configText({ name: 'p' }));
    writePlugin(join(bin, 'p'), `printf '%b' '${output}'`, '/bin/sh');
    const { found, problems, lines } = await openSource(t, { config, binDir: bin });
    t.same(await found('registry.example/app'), [], output);
    t.equal(problems().length, 1);
    // oxlint-disable-next-line no-control-regex
    t.notMatch([...problems(), ...lines.map((line) => line.trimEnd())].join(''), /[\u0000-\u001f]|\\u001b/);
  }
});

t.test('a plugin does not get the agent’s environment', async (t) => {
  const { bin, config } = nodeDir(
    t,
    configText({
      name: 'p',
      env: [
        { name: 'B', value: 'from config' },
        { name: 'C', value: '' },
      ],
    }),
  );
  writePlugin(
    join(bin, 'p'),
    `env=$(tr '\\0' '|' < /proc/$$/environ)\n` +
      `echo '{"kind":"CredentialProviderResponse","apiVersion":"${execV1}","cacheKeyType":"Image",` +
      `"auth":{"registry.example":{"username":"'"$env"'","password":""}}}'`,
    '/bin/sh',
  );
  const ours = [
    'KUBERNETES_SERVICE_HOST=10.0.0.1',
    'NODE_OPTIONS=--no-warnings',
    'AWS_SESSION_TOKEN=ours',
    'HOME=/h',
  ];
  const driver = fileURLToPath(new URL('print-lookup.ts', import.meta.url));
  const args = ['-i', ...ours, process.execPath, driver, config, bin, 'registry.example/app'];
  const printed = execFileSync('/usr/bin/env', args, { encoding: 'utf8' });
  const expected = ['HOME=/root', `PATH=${path}`, 'A=from setting', 'B=from config', 'C=', ''];
  // Where the machine has a kubelet, its variables come first.
  t.match(printed, /A=from setting\|B=from config\|C=\|$/);
  t.notMatch(printed, /KUBERNETES|NODE_OPTIONS|ours/);
  if (!printed.includes('INVOCATION_ID=')) t.equal(printed, expected.join('|'));
});

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

t.test('a program that becomes unsafe does not run', async (t) => {
  const { bin, config } = nodeDir(t, configText({ name: 'p' }));
  writePlugin(join(bin, 'p'), answering(creds('registry.example', 'u')));
  const { found, problems } = await openSource(t, { config, binDir: bin });
  chmodSync(bin, 0o777);
  t.same(await found('registry.example/app'), []);
  t.match(problems(), [/the directory of .* can be written by others/]);
});
