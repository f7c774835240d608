import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { loadCertificates } from '../../../daemon/crio/certs-d.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { createCa } from '../../support/certificates.ts';
import { writeFiles } from '../../support/write-files.ts';

const ca = await createCa();
const pair = await ca.issue({ cn: 'client', client: true });
const pem = ca.cert.trim();

function node(t: Test, content: Readonly<Record<string, string>>) {
  const root = t.testdir();
  writeFiles(root, content);
  const files = new NodeFiles(root);
  const find = async (host: string) => {
    const found = (await loadCertificates({ home: '/root' }, files)).get(host);
    if (found instanceof Error) throw found;
    return found;
  };
  return { root, files, find };
}

const etc = '/etc/containers/certs.d';

t.test('the directory in root’s home comes first', async (t) => {
  const { find, root, files } = node(t, { [`${etc}/a.test:5000/ca.crt`]: ca.cert });
  t.strictSame((await find('a.test:5000'))?.ca, [pem]);
  const own = '/root/.config/containers/certs.d';
  const watched = [own, etc, `${etc}/a.test:5000`, '/etc/docker/certs.d'];
  t.strictSame([...files.dirs], watched, 'all are watched');
  mkdirSync(join(root, 'root/.config/containers/certs.d/a.test:5000'), { recursive: true });
  t.strictSame((await find('a.test:5000'))?.ca, []);
});

t.test('a certificate goes with the key of its name', async (t) => {
  const { find } = node(t, { [`${etc}/a.test/c.cert`]: pair.cert, [`${etc}/a.test/c.key`]: pair.key });
  const found = await find('a.test');
  t.strictSame(
    found?.client.map(({ certificate, key }) => [certificate, reveal(key)]),
    [[pair.cert, pair.key]],
  );
});

t.test('links stay inside the root of the node', async (t) => {
  const { find, root } = node(t, { '/etc/pki/ours.pem': ca.cert, [`${etc}/a.test/README`]: ca.cert });
  symlinkSync('/etc/pki/ours.pem', join(root, etc, 'a.test/ca.crt'));
  t.strictSame((await find('a.test'))?.ca, [pem]);
});

t.test('what fails the endpoint', async (t) => {
  const cases: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'a key is missing': { 'c.cert': pair.cert },
    'a certificate is missing': { 'c.key': pair.key },
    'it is a file': { '': '' },
  };
  for (const [what, files] of Object.entries(cases)) {
    const paths = Object.entries(files).map(([name, content]) => [
      `${etc}/a.test/${name}`.replace(/\/$/, ''),
      content,
    ]);
    const { find } = node(t, Object.fromEntries(paths) as Record<string, string>);
    await t.rejects(find('a.test'), { name: 'ConfigFileError' }, what);
    t.equal(await find('b.test'), undefined, 'other hosts are not affected');
  }
});
