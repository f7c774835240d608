import * as fc from 'fast-check';
import t from 'tap';
import { formatKey, formatToml, parseToml } from '../../../src/policy/configuration/toml.ts';
import type { TomlValue } from '../../../src/policy/settings/setting.ts';

t.test('errors have a line and a short reason', async (t) => {
  const cases: [string, number, RegExp][] = [
    ['a = 1\nb = [1,\nc = 2', 3, /^"c" was not expected here$/],
    ['a = 1\nb = arm64 # c', 2, /^text needs quotes: write "arm64"$/],
    ['a = x y', 1, /^"x" was not expected here$/],
    ['a = true\na = true', 2, /redefine existing key 'a'/],
    ['a = 1\na = 2', 2, /redefine existing key 'a'/],
    ['\n\nb = ', 3, /end of input was not expected/],
    ['a = 99999999999999999999', 1, /64-bit/],
    [`a = ${'['.repeat(100)}${']'.repeat(100)}`, 1, /./],
    [`${'x'.repeat(5000)} y`, 1, /^.{1,170}$/],
  ];
  for (const [text, where, message] of cases)
    t.throws(() => parseToml(text), { where, message, name: 'TomlError' }, text.slice(0, 40));
});

t.test('values are formatted on one line', async (t) => {
  const cases: [TomlValue, string][] = [
    ['a "b"\n', '"a \\"b\\"\\n"'],
    ['\u007F', String.raw`"\u007F"`],
    [1, '1'],
    [true, 'true'],
    [[], '[]'],
    [['a', ['b']], '["a", ["b"]]'],
    [{}, '{}'],
    [{ a: 1, 'b c': { d: [] } }, '{ a = 1, "b c" = { d = [] } }'],
  ];
  for (const [value, text] of cases) t.equal(formatToml(value), text);
  t.equal(formatKey('a-b_1'), 'a-b_1');
  t.equal(formatKey('a.b'), '"a.b"');
});

t.test('property: parsing reverses formatting', async () => {
  const { value } = fc.letrec<{ value: TomlValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
      fc.integer(),
      fc.boolean(),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(value, (value) => {
      const { back } = parseToml(`back = ${formatToml(value)}`).value;
      // Objects of TOML have no prototype.
      return JSON.stringify(back) === JSON.stringify(value);
    }),
    { numRuns: 200 },
  );
});
