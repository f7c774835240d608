import t from 'tap';
import { text } from '../../../src/policy/value-kinds/plain.ts';
import { environmentLayer, fileLayer, flagLayer } from '../../../src/policy/configuration/layer.ts';
import { describeProblem } from '../../../src/policy/configuration/problem.ts';
import { settingsOf } from '../../../src/policy/settings/setting.ts';
import { like } from '../../support/like.ts';

const setting = settingsOf('agent').live(text('text'), { help: 'A setting.' });
const table = { plain: setting, 'group.one': setting, 'group.deep.two': setting };

t.test('a dot in a key is a table in the file', async (t) => {
  for (const toml of [
    'group.one = "1"\ngroup.deep.two = "2"\n',
    '[group]\none = "1"\n[group.deep]\ntwo = "2"\n',
    'group = { one = "1", deep = { two = "2" } }\n',
  ]) {
    const { values, problems } = fileLayer(table, 'f', toml);
    t.strictSame(problems, [], toml);
    t.strictSame(
      [...values].map(([key, { value }]) => [key, value]),
      [
        ['group.one', '1'],
        ['group.deep.two', '2'],
      ],
      toml,
    );
  }
  const { values } = fileLayer(table, 'f', '[group]\none = "1"\n[group.deep]\ntwo = "2"\n');
  t.equal(values.get('group.deep.two')?.place().where, 'f:4');
});

t.test('a dot in a key separates words in variables and flags', async (t) => {
  t.equal(
    environmentLayer(table, { ARCHWRIGHT_GROUP_DEEP_TWO: 'x' }).values.get('group.deep.two')?.value,
    'x',
  );
  t.equal(flagLayer(table, { 'group.one': 'x' }).values.get('group.one')?.place().where, '--group-one');
});

t.test('unknown keys and misplaced tables are reported', async (t) => {
  const wasRemoved =
    'it was removed: Fail stays Fail; set failurePolicy to Ignore if pods must be created while no webhook answers';
  const cases: [string, string][] = [
    ['group = 1', 'f:1: group must be a table'],
    ['\ngroup.one.more = 1', 'f:2: group.one must be a string in quotes, not a table'],
    ['[group]\nonne = "1"', 'f:2: group.onne is not a known setting; did you mean group.one?'],
    ['[group.elsewhere]\ntwo = "2"', 'f:1: group.elsewhere is not a known setting'],
    ['[[group]]\none = "1"', 'f:1: group must be a table'],
    ['"__proto__" = 1', 'f:1: __proto__ is not a known setting'],
    ['toString = 1', 'f:1: toString is not a known setting'],
    ['webhookAbsenceTime = "0s"', `f:1: webhookAbsenceTime is not a known setting; ${wasRemoved}`],
  ];
  for (const [toml, expected] of cases) {
    t.strictSame(fileLayer(table, 'f', toml).problems.map(describeProblem), [expected], toml);
  }
  const { problems } = environmentLayer(table, { ARCHWRIGHT_WEBHOOK_ABSENCE_TIME: '0s' });
  like(t, problems, [{ message: `is not a known variable; ${wasRemoved}` }]);
});
