import { inspect } from 'node:util';
import t from 'tap';
import { plainJson, reveal, secret, type Secret } from '../../src/telemetry/secret.ts';

const text = 'hunter2-hunter2';

t.test('a secret prints as [secret]', async (t) => {
  const holder = secret(text);
  t.equal(String(holder as unknown), '[secret]');
  t.equal(JSON.stringify({ holder }), '{"holder":"[secret]"}');
  t.equal(inspect({ holder }), '{ holder: [secret] }');
  t.strictSame(Object.keys(holder), []);
  t.notMatch(inspect(holder, { showHidden: true, depth: 9 }), text);
});

t.test('reveal returns the text', async (t) => {
  t.equal(reveal(secret(text)), text);
  t.equal(reveal(secret('')), '');
});

t.test('content for hashing has secrets in clear text, and maps', async (t) => {
  const content = [secret(text), new Map([['a', { nested: secret('s') }]]), null, 'x'];
  t.equal(plainJson(content), `["${text}",[["a",{"nested":"s"}]],null,"x"]`);
});

t.test('a secret cannot be forged or changed', async (t) => {
  t.throws(() => reveal({} as Secret), TypeError);
  t.throws(() => reveal(Object.create(secret(text)) as Secret), TypeError);
  t.throws(() => Object.assign(secret(text), { toString: () => 'x' }), TypeError);
});
