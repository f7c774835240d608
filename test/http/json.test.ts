import * as fc from 'fast-check';
import { anything, assert, property } from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { asText, parseObject, readShape, sizeOfJson } from '../../src/http/json.ts';
import { items, members, readString } from '../../src/http/json-text.ts';

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
});

t.test('a JSON text is counted before it is parsed', async (t) => {
  t.strictSame(sizeOfJson(bytes(String.raw`{"a\\":["[,:\"{",1],"b":{}}`)), { values: 6, keys: 2, depth: 2 });
});

t.test('a missing field and an unknown one are called so', async (t) => {
  const problemOf = (value: object) => () =>
    readShape(v.strictObject({ a: v.string() }), value, (where, problem) => new Error(`${where} ${problem}`));
  t.throws(problemOf({}), { message: 'a is missing' });
  t.throws(problemOf({ a: '', b: 1 }), { message: 'b is not a known field' });
});

t.test('texts are read up to a length', async (t) => {
  t.equal(asText('amd64'), 'amd64');
  t.equal(asText('a'.repeat(256)), 'a'.repeat(256));
  t.equal(asText('a'.repeat(257)), undefined);
  t.equal(asText(7), undefined);
});

t.test('members keep their order and duplicates, with values as text', async (t) => {
  t.strictSame(members('{"b":1,"a":{"x":[1,"]}"]} , "b" : "\\"," , "c":[],"d":null}'), [
    ['b', '1'],
    ['a', '{"x":[1,"]}"]}'],
    ['b', '"\\","'],
    ['c', '[]'],
    ['d', 'null'],
  ]);
  t.strictSame(members(' { } '), []);
  t.strictSame(members('\n{"a":\ttrue\r\n}'), [['a', 'true']]);
  t.strictSame(members('{"\\u0061\\"":0}'), [['a"', '0']]);
  t.strictSame(members('{"__proto__":{"a":1}}'), [['__proto__', '{"a":1}']]);
});

t.test('only objects have members, and only lists have items', async (t) => {
  for (const text of ['1', '"{}"', 'null', 'true', ''])
    t.equal(members(text) ?? items(text), undefined, text);
  t.equal(members('[]'), undefined);
  t.equal(items('{}'), undefined);
});

t.test('property: agrees with JSON.parse on any JSON', async (t) => {
  assert(
    property(anything(), (value) => {
      const text = JSON.stringify({ value, again: [value, 1] }, null, 1);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const found = Object.fromEntries(members(text) ?? []);
      const again = items(found['again'] ?? '') ?? [];
      const read = { ...found, again: `[${again.join(',')}]` } as Record<string, string>;
      for (const name of Object.keys(parsed)) t.strictSame(JSON.parse(read[name] ?? ''), parsed[name]);
    }),
    { numRuns: 100 },
  );
});

t.test('depth is limited as in Go, without recursion', async (t) => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  t.equal(members(nested(9999))?.length, 1);
  t.throws(() => members(nested(10_000)), RangeError);
  t.throws(() => members(nested(1_000_000)), RangeError);
});

t.test('strings are decoded as in Go', async (t) => {
  t.equal(readString('"a\\n\\u00e9"'), 'a\né');
  t.equal(readString('"\\ud800"'), '\ufffd');
  t.equal(readString('1'), undefined);
  t.equal(readString('null'), undefined);
});
