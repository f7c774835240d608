import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../../../daemon/kubelet/config/read-config.ts';
import { configText } from '../support.ts';

const names = async (path: string, root?: string): Promise<string[]> =>
  (await readConfig(path, root)).providers.map(({ name }) => name);

t.test('reads one file, or the files of a directory in the order of their names', async (t) => {
  const dir = t.testdir({
    any: configText({ name: 'any' }),
    conf: {
      'b.yaml': configText({ name: 'b' }),
      'a.yml': configText({ name: 'a2' }, { name: 'a1' }),
      'B.json': configText({ name: 'B' }),
      'c.YAML': 'not read',
      'd.txt': 'not read',
      'e.json': { 'f.json': 'not read' },
    },
  });
  t.strictSame(await names(join(dir, 'any')), ['any']);
  t.strictSame(await names(join(dir, 'conf')), ['B', 'a2', 'a1', 'b']);
});

t.test('links are resolved inside the host root', async (t) => {
  const root = t.testdir({ etc: { 'real.yaml': configText({ name: 'p' }) }, conf: {} });
  symlinkSync('/etc/real.yaml', join(root, 'conf/a.yaml'));
  t.strictSame(await names('/conf', root), ['p']);
  symlinkSync('../../etc/passwd', join(root, 'conf/b.yaml'));
  await t.rejects(readConfig('/conf', root), {
    name: 'ProviderConfigError',
    message: /^unable to read file .*b\.yaml: leads out of/,
  });
  await t.rejects(readConfig('/../etc/passwd', root), { message: /unable to access path .*leads out of/ });
});

t.test('one invalid file makes the whole configuration invalid', async (t) => {
  const dir = t.testdir({
    empty: {},
    other: { 'a.txt': '' },
    twice: { 'a.json': configText({ name: 'p' }), 'b.json': configText({ name: 'p' }) },
    same: configText({ name: 'p' }, { name: 'p' }),
    broken: { 'a.json': configText({ name: 'p' }), 'b.json': '{' },
    binary: Buffer.from([0x6b, 0xff]),
    large: ' '.repeat(1_048_577),
  });
  const cases: [string, RegExp][] = [
    ['', /^credential provider config path is empty$/],
    [join(dir, 'none'), /^unable to access path ".*\/none": there is no such file$/],
    [join(dir, 'empty'), /^no configuration files found in directory ".*\/empty"$/],
    [join(dir, 'other'), /^no configuration files found/],
    [join(dir, 'twice'), /^duplicate provider name "p" found in configuration file\(s\)$/],
    [join(dir, 'same'), /^duplicate provider name "p"/],
    [join(dir, 'broken'), /^error decoding config ".*\/b\.json": is not valid JSON$/],
    [join(dir, 'binary'), /^error decoding config .*not UTF-8/],
    [join(dir, 'large'), /^unable to read file .*larger than 1048576 bytes/],
  ];
  for (const [path, message] of cases) {
    await t.rejects(readConfig(path), { name: 'ProviderConfigError', message }, path);
  }
});

t.test('a missing path is reported, with its path on the node', async (t) => {
  await t.rejects(readConfig('/etc/plugins.yaml', t.testdir({})), {
    message: 'unable to access path "/etc/plugins.yaml": there is no such file',
  });
});

t.test('the hash depends on bytes, lengths and order of all files', async (t) => {
  const dir = t.testdir({ a: {}, b: {} });
  const hash = async (files: Record<string, string>): Promise<string> => {
    const at = join(dir, `c${Math.random()}`);
    mkdirSync(at);
    for (const [name, content] of Object.entries(files)) writeFileSync(join(at, name), content);
    return (await readConfig(at)).hash;
  };
  const one = configText({ name: 'one' });
  const two = configText({ name: 'two' });
  const first = await hash({ '1.json': one, '2.json': two });
  // As the kubelet's metric: 8 bytes of length before each file.
  const sized = (text: string) => [Buffer.from([0, 0, 0, 0, 0, 0, 0, text.length]), Buffer.from(text)];
  const expected = createHash('sha256').update(Buffer.concat([one, two].flatMap(sized)));
  t.equal(first, `sha256:${expected.digest('hex')}`);
  t.equal(await hash({ '1.yaml': one, '9.yml': two, 'x.txt': '' }), first, 'names do not matter');
  t.not(await hash({ '1.json': two, '2.json': one }), first);
  t.not(
    await hash({ '1.json': `${one} `, '2.json': two }),
    await hash({ '1.json': one, '2.json': ` ${two}` }),
  );
});
