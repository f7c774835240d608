import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { replaceTlsFiles } from '../../../daemon/certificate/tls-directory.ts';

const contents = (text: string) => ({ 'tls.crt': `${text} crt`, 'tls.key': `${text} key`, 'ca.crt': 'ca' });

t.test('files are replaced together, in place of leftovers, and only their owner reads them', async (t) => {
  const dir = join(t.testdir(), 'own');
  mkdirSync(join(dir, '..00112233445566ff'), { recursive: true });
  writeFileSync(join(dir, '..00112233445566ff', 'tls.key'), 'old');
  symlinkSync('..gone', join(dir, '..data'));
  symlinkSync('..gone', join(dir, '..data.new'));
  writeFileSync(join(dir, 'tls.crt'), 'a plain file');
  for (const text of ['first', 'second']) {
    await replaceTlsFiles(dir, contents(text));
    for (const [name, content] of Object.entries(contents(text))) {
      t.equal(readFileSync(join(dir, name), 'utf8'), content);
      t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
    }
    const version = readdirSync(dir).filter((name) => /^\.\.[0-9a-f]{16}$/.test(name));
    t.equal(version.length, 1, 'earlier versions are removed');
    t.equal(statSync(join(dir, version[0] ?? '')).mode & 0o777, 0o700);
  }
});
