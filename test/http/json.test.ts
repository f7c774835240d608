import * as fc from 'fast-check';
import t from 'tap';
import { asText, parseObject, sizeOfJson } from '../../src/http/json.ts';
import { like } from '../support/like.ts';

const bytes = (text: string): Buffer => Buffer.from(text);

t.test('JSON objects are read', async (t) => {
  t.strictSame(parseObject(bytes('{"a":{"b":["[[[{{{\\"[", 1]}}')), { a: { b: ['[[[{{{"[', 1] } });
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 20 })), (value) => {
      t.strictSame(JSON.stringify(parseObject(bytes(JSON.stringify(value)))), JSON.stringify(value));
    }),
    { numRuns: 200 },
  );
});

t.test('anything else is an InvalidDocument without a quotation', async (t) => {
  const deep = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  t.doesNotThrow(() => parseObject(bytes(deep(64))));
  for (const text of [
    '',
    ' ',
    'null',
    '[]',
    '"text"',
    '7',
    '{',
    '{"a":secret}',
    deep(65),
    '['.repeat(1_000_000),
  ]) {
    t.throws(() => parseObject(bytes(text)), { name: 'InvalidDocument', message: /^it / }, text.slice(0, 20));
  }
  t.throws(() => parseObject(Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d])), /UTF-8/);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
      try {
        parseObject(noise);
      } catch (error) {
        like(t, error, { name: 'InvalidDocument' });
      }
    }),
    { numRuns: 200 },
  );
});

t.test('a JSON text is counted before it is parsed', async (t) => {
  t.strictSame(sizeOfJson(bytes(String.raw`{"a\\":["[,:\"{",1],"b":{}}`)), { values: 6, keys: 2, depth: 2 });
});

t.test('texts are read up to a length', async (t) => {
  t.equal(asText('amd64'), 'amd64');
  t.equal(asText('a'.repeat(256)), 'a'.repeat(256));
  t.equal(asText('a'.repeat(257)), undefined);
  t.equal(asText(7), undefined);
});
