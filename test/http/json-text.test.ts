import t from 'tap';
import { anything, assert, property } from 'fast-check';
import { items, members, readString } from '../../src/http/json-text.ts';

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
