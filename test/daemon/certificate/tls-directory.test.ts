import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createCa } from '../../support/certificates.ts';
import { replaceTlsFiles } from '../../../daemon/certificate/tls-directory.ts';

async function contents() {
  const ca = await createCa();
  const { cert, key } = await ca.issue({ cn: 'agent', server: true });
  return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
}

t.test('files are replaced together, in place of leftovers, and only their owner reads them', async (t) => {
  const dir = join(t.testdir(), 'own');
  mkdirSync(join(dir, '..00112233445566ff'), { recursive: true });
  writeFileSync(join(dir, '..00112233445566ff', 'tls.key'), 'old');
  symlinkSync('..gone', join(dir, '..data'));
  symlinkSync('..gone', join(dir, '..data.new'));
  writeFileSync(join(dir, 'tls.crt'), 'a plain file');
  for (const files of [await contents(), await contents()]) {
    await replaceTlsFiles(dir, files);
    for (const [name, content] of Object.entries(files)) {
      t.equal(readFileSync(join(dir, name), 'utf8'), content);
      t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
    }
    const version = readdirSync(dir).filter((name) => /^\.\.[0-9a-f]{16}$/.test(name));
    t.equal(version.length, 1, 'earlier versions are removed');
    t.equal(statSync(join(dir, version[0] ?? '')).mode & 0o777, 0o700);
  }
});

t.test('a certificate that cannot be used replaces nothing', async (t) => {
  const dir = join(t.testdir(), 'own');
  const files = await contents();
  await replaceTlsFiles(dir, files);
  const before = readdirSync(dir);
  const wrong = { ...files, 'tls.key': (await contents())['tls.key'] };
  await t.rejects(replaceTlsFiles(dir, wrong), { name: 'ServingError', message: /is not the key of/ });
  t.strictSame(readdirSync(dir), before);
});
