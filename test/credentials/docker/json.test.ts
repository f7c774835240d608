import { anything, assert, property } from 'fast-check';
import t from 'tap';
import { members, namesField, readString } from '../../../src/credentials/docker/json.ts';

t.test('members in written order, duplicates included, values as text', async (t) => {
  t.same(members('{"b":1,"a":{"x":[1,"]}"]} , "b" : "\\"," , "c":[],"d":null}'), [
    ['b', '1'],
    ['a', '{"x":[1,"]}"]}'],
    ['b', '"\\","'],
    ['c', '[]'],
    ['d', 'null'],
  ]);
  t.same(members(' { } '), []);
  t.same(members('\n{"a":\ttrue\r\n}'), [['a', 'true']]);
  t.same(members('{"\\u0061\\"":0}'), [['a"', '0']]);
  t.same(members('{"__proto__":{"a":1}}'), [['__proto__', '{"a":1}']]);
});

t.test('what is no object has no members', async (t) => {
  for (const text of ['[]', '1', '"{}"', 'null', 'true', '']) t.equal(members(text), undefined, text);
});

t.test('agrees with JSON.parse on whatever JSON there is', async () => {
  assert(
    property(anything(), (value) => {
      const text = JSON.stringify({ value, again: [value] }, null, 1);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const found = Object.fromEntries(members(text) ?? []);
      return Object.keys(parsed).every(
        (name) => JSON.stringify(JSON.parse(found[name] ?? '')) === JSON.stringify(parsed[name]),
      );
    }),
  );
});

t.test('depth is limited as in Go, and needs no stack', async (t) => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  t.equal(members(nested(9999))?.length, 1);
  t.throws(() => members(nested(10_000)), RangeError);
  t.throws(() => members(nested(1_000_000)), RangeError);
});

t.test('strings', async (t) => {
  t.equal(readString('"a\\n\\u00e9"'), 'a\né');
  t.equal(readString('"\\ud800"'), '\ufffd');
  t.equal(readString('1'), undefined);
  t.equal(readString('null'), undefined);
});

t.test('names stand for fields whatever their case', async (t) => {
  for (const name of ['auths', 'AUTHS', 'Auths', 'auth\u017f']) t.ok(namesField(name, 'auths'), name);
  t.ok(namesField('\u212aey', 'key'));
  for (const name of ['auth', 'auths ', 'author', 'auth\u00df']) t.notOk(namesField(name, 'auths'), name);
});
