import t from 'tap';
import { goQuote, goType, goValue } from '../../../daemon/go.ts';

t.test('%q', async (t) => {
  t.equal(goQuote('a"\\\n\t\u0007\u0001\u007fé€\u200b😀'), String.raw`"a\"\\\n\t\a\x01\x7fé€\u200b😀"`);
});

t.test('%v and %T', async (t) => {
  const cases: [value: unknown, shown: string, type: string][] = [
    ['a', 'a', 'string'],
    [3n, '3', 'int64'],
    [1.5, '1.5', 'float64'],
    [true, 'true', 'bool'],
    [['a', 1n], '[a 1]', '[]interface {}'],
    [{ b: 1n, a: ['x'] }, 'map[a:[x] b:1]', 'map[string]interface {}'],
    [new Date(0), '1970-01-01T00:00:00.000Z', 'time.Time'],
  ];
  for (const [value, shown, type] of cases) t.same([goValue(value), goType(value)], [shown, type]);
});
