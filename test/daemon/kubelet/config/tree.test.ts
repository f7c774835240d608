import t from 'tap';
import {
  boolean,
  DecodeError,
  entries,
  fields,
  items,
  text,
  parseJsonTree,
} from '../../../../daemon/kubelet/config/tree.ts';

t.test('JSON members in order, with duplicates', async (t) => {
  t.same(parseJsonTree(' {"b" : [1, {"a":null}, "x\\"y" ] ,\t"b":true,\n"":-1.5e3, "c":{}, "d":[]} '), {
    members: [
      ['b', [1, { members: [['a', null]] }, 'x"y']],
      ['b', true],
      ['', -1500],
      ['c', { members: [] }],
      ['d', []],
    ],
  });
  t.equal(parseJsonTree('"\\ud800"'), '\ufffd');
  for (const bad of ['', '{', '{"a":1,}', '{"a":1}{', '\ufeff{}', "{'a':1}", 'hunter22']) {
    t.throws(() => parseJsonTree(bad), { name: 'DecodeError', message: 'is not valid JSON' }, bad);
  }
  t.throws(() => parseJsonTree(`${'['.repeat(70)}${']'.repeat(70)}`), { message: /nested deeper than 64/ });
});

t.test('fields match by exact names; unknown and duplicate fields are errors', async (t) => {
  const strict: string[] = [];
  const tree = parseJsonTree('{"name":"a","Name":"b","name":"c","x":{"y":1}}');
  t.same(fields(tree, 'list[0]', ['name', 'absent'], strict), { name: 'c' });
  t.same(strict, [
    'unknown field "list[0].Name"',
    'duplicate field "list[0].name"',
    'unknown field "list[0].x"',
  ]);
  t.same(fields(null, '', ['name'], strict), {});
  const more: string[] = [];
  t.same(
    [...entries(parseJsonTree('{"a":1,"b":2,"a":3,"__proto__":4}'), 'auth', more)],
    [
      ['a', 3],
      ['b', 2],
      ['__proto__', 4],
    ],
  );
  t.same(more, ['duplicate field "auth.a"']);
});

t.test('null is the empty value of every kind; other kinds are errors', async (t) => {
  t.equal(text(null, 'a'), '');
  t.equal(text(undefined, 'a'), '');
  t.equal(boolean(null, 'a'), undefined);
  t.equal(boolean(false, 'a'), false);
  t.equal(items(null, 'a', text), undefined);
  t.same(items(['x', null], 'a', text), ['x', '']);
  const wrong: [() => unknown, RegExp][] = [
    [() => text(1, 'a.b'), /^cannot unmarshal number into "a\.b" of type string$/],
    [() => text(true, 'a'), /cannot unmarshal bool/],
    [() => text(['hunter22'], 'a'), /cannot unmarshal array/],
    [() => boolean('yes', 'a'), /cannot unmarshal string into "a" of type bool/],
    [() => items('x', 'a', text), /of type list/],
    [() => items([1], 'a', text), /into "a\[0\]"/],
    [() => fields('x', '', ['a'], []), /cannot unmarshal string into the document of type object/],
    [() => fields([], 'a', ['a'], []), /cannot unmarshal array into "a" of type object/],
  ];
  for (const [act, message] of wrong) {
    t.throws(act, DecodeError);
    t.throws(act, { code: 'malformed', temporary: false, message });
  }
});
