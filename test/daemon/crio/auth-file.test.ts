/** JSON as Go reads it. Keys and credentials are held by `npm run vectors` and the node suite of CRI-O. */
import t from 'tap';
import { credentialIn, parseAuthFile } from '../../../daemon/crio/auth-file.ts';
import { DockerConfigError } from '../../../src/credentials/docker/docker-config.ts';

const parse = (text: string) => parseAuthFile(Buffer.from(text), 'config.json');

t.test('documents as Go reads them', async (t) => {
  t.equal(parse('{"auths":null,"credsStore":1}').entries.size, 0);
  t.strictSame([...parse('{"credHelpers":{"a.test":"h"}}').helpers], [['a.test', 'h']]);
  t.strictSame([...parse('{"auths":{"a":{}},"Auths":{"b":null}}').entries.keys()], ['a', 'b']);
  for (const text of ['', 'x', '[]', '{"auths":[]}', '{"auths":{"a":{"auth":1}}}', '{"credHelpers":{"a":1}}'])
    t.throws(() => parse(text), DockerConfigError, text);
});

t.test('an entry of two empty texts is anonymous', async (t) => {
  const file = parse(`{"auths":{"a.test":{"auth":"${Buffer.from(':').toString('base64')}"}}}`);
  t.equal(credentialIn(file, 'a.test/x'), undefined);
});
