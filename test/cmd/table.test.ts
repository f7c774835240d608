import t from 'tap';
import { table } from '../../cmd/program/table.ts';

t.test('columns are as wide as their widest cell, and nothing follows the last', async (t) => {
  const rows = [
    ['A', 'LONG HEADER', 'C'],
    ['wide cell', 'b', ''],
    ['a', '', 'c'],
  ];
  t.equal(table(rows, '> '), '> A          LONG HEADER  C\n> wide cell  b\n> a                       c\n');
  t.equal(table([]), '');
});
