import t from 'tap';
import { assert, property, string, uint8Array } from 'fast-check';
import { namesField, Base64Error, decodeBase64 } from '../../../src/credentials/docker/go-encoding.ts';

t.test('field names match in any case', async (t) => {
  for (const name of ['auths', 'AUTHS', 'Auths', 'auth\u017f']) t.ok(namesField(name, 'auths'), name);
  t.ok(namesField('\u212aey', 'key'));
  for (const name of ['auth', 'auths ', 'author', 'auth\u00df']) t.notOk(namesField(name, 'auths'), name);
});

const good: [string, 'padded' | 'unpadded', string][] = [
  ['', 'padded', ''],
  ['', 'unpadded', ''],
  ['\r\n', 'padded', ''],
  ['YQ==', 'padded', 'a'],
  ['YWI=', 'padded', 'ab'],
  ['YWJj', 'padded', 'abc'],
  ['YWJj', 'unpadded', 'abc'],
  ['YQ', 'unpadded', 'a'],
  ['YWI', 'unpadded', 'ab'],
  ['Y\nQ\r=\n=\r\n', 'padded', 'a'],
  ['Y\nQ\n', 'unpadded', 'a'],
  ['YR==', 'padded', 'a'],
  ['Pz8+Pz8/', 'padded', '??>???'],
];

for (const [text, padding, expected] of good) {
  t.test(`${JSON.stringify(text)} is ${padding} base64`, async (t) => {
    t.equal(decodeBase64(text, padding).toString(), expected);
  });
}

/** As refused by Go 1.26. */
const bad: [string, 'padded' | 'unpadded'][] = [
  ['====', 'padded'],
  ['Y===', 'padded'],
  ['YQ=', 'padded'],
  ['YQ=a', 'padded'],
  ['YQ=\na', 'padded'],
  ['YQ==a', 'padded'],
  ['YWI==', 'padded'],
  ['YWI=\n\nY', 'padded'],
  ['YQ', 'padded'],
  ['YWJjYWI', 'padded'],
  ['Y', 'unpadded'],
  ['YWJjY', 'unpadded'],
  ['YQ==', 'unpadded'],
  ['YQ== ', 'padded'],
  [' YQ==', 'padded'],
  ['Pz8-Pz8_', 'padded'],
  ['YéQ=', 'padded'],
];

for (const [text, padding] of bad) {
  t.test(`${JSON.stringify(text)} is not ${padding} base64`, async (t) => {
    t.throws(() => decodeBase64(text, padding), { name: 'Base64Error', message: 'illegal base64 data' });
  });
}

t.test('property: decoding reverses encoding', async () => {
  assert(
    property(uint8Array(), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      return (
        decodeBase64(text, 'padded').equals(bytes) &&
        decodeBase64(text.replace(/=+$/, ''), 'unpadded').equals(bytes)
      );
    }),
  );
});

t.test('property: any text is decoded or refused with a Base64Error', async () => {
  assert(
    property(string({ unit: 'binary' }), (text) => {
      try {
        return Buffer.isBuffer(decodeBase64(text, 'padded'));
      } catch (error) {
        return error instanceof Base64Error;
      }
    }),
  );
});
