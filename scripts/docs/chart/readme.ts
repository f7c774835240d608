/** The chart's `README.md`: how to install it in prose, and tables of its values. */
import { formatToml } from '../../../src/policy/configuration/toml.ts';
import { written } from '../../../src/policy/settings/setting.ts';
import { anchorOf, code, table } from '../markdown.ts';
import { settingGroups } from '../settings.ts';
import { chartSections, firstValues, isSetting } from './chart.ts';
import { chartIntroduction } from './introduction.ts';
import type { SettingValue } from './settings.ts';
import type { Section, Value } from './value.ts';
import { labels, labeledKinds } from './values/general.ts';

const header = ['Value', 'Meaning', 'Default'];
/** Tables of pods, which have many values in common. */
const podTables = ['webhook', 'controller', 'agent', 'jobs'];

export function chartReadme(): string {
  const sections = chartSections().filter(({ title }) => title !== labels.title);
  const common = commonValues(sections.flatMap(({ values }) => values));
  const shared = new Set([...common.values()].flatMap((values) => values.map(({ key }) => key)));
  const own = sections
    .map(({ title, values }) => ({
      title,
      values: values.filter(
        (value) => !shared.has(value.key) && (!isSetting(value) || firstValues.includes(value.key)),
      ),
    }))
    .filter(({ values }) => values.length > 0);
  const [first, ...rest] = own.map(sectionText);
  return [
    chartIntroduction,
    '## Values\n\n`values.yaml` has every value with its description.\n',
    first,
    settingsText(sections.flatMap(({ values }) => values).filter(isSetting)),
    ...rest,
    `### Pods\n\n${commonTable(common)}\n`,
    labelsText(),
  ].join('\n');
}

function sectionText({ title, values }: Section): string {
  const rows = values.map((value) => [code(value.key), value.help, presetOf(value)]);
  return `### ${title}\n\n${table(header, rows)}\n`;
}

/** The settings of the program have a page of their own. */
function settingsText(values: readonly SettingValue[]): string {
  const rows = settingGroups.map(({ title, settings }) => [
    `[${title}](../../docs/reference/settings.md#${anchorOf(title)})`,
    values
      .filter(({ key }) => Object.hasOwn(settings, key))
      .map(({ key }) => code(key))
      .join(', '),
  ]);
  const others = values.flatMap(({ key, chartDefault }) =>
    chartDefault === undefined ? [] : [[code(key), chartDefault]],
  );
  return [
    '### Settings\n',
    'Every setting of the program is a value of the same name.\n',
    `${table(['Group', 'Values'], rows)}\n`,
    'These have other defaults in the chart; `<fullname>` is the name of the release with the chart’s.\n',
    `${table(['Value', 'Default'], others)}\n`,
  ].join('\n');
}

/** Values that several pods have with the same meaning, by their name and help. */
function commonValues(values: readonly Value[]): ReadonlyMap<string, readonly Value[]> {
  const pods = values.filter(({ key }) => podTables.includes(tableOf(key)));
  const named = Map.groupBy(pods, ({ key, help }) => `${nameOf(key)} ${help}`);
  return new Map([...named].filter(([, same]) => same.length > 1));
}

function commonTable(common: ReadonlyMap<string, readonly Value[]>): string {
  const rows = [...common.values()].map((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const tables = same.map(({ key }) => tableOf(key));
    const isEvery = tables.length === podTables.length;
    const presets = new Set(same.map(presetOf));
    const preset =
      presets.size === 1
        ? presetOf(first)
        : same.map((value) => `${tableOf(value.key)}: ${presetOf(value)}`).join('; ');
    return [code(nameOf(first.key)), isEvery ? 'all' : tables.join(', '), first.help, preset];
  });
  const tables = podTables.map(code).join(', ');
  return `Below ${tables}, such as \`webhook.resources\`:\n\n${table(['Value', 'Of', 'Meaning', 'Default'], rows)}`;
}

function labelsText(): string {
  const kinds = new Set<string>(labeledKinds);
  const others = labels.values.filter(({ key }) => !kinds.has(tableOf(key)));
  const rows = [...others, ...labels.values.filter(({ key }) => tableOf(key) === labeledKinds[0])].map(
    (value) => [code(value.key), value.help],
  );
  const same = labeledKinds.slice(1).map(code).join(', ');
  return `### ${labels.title}\n\n${table(['Value', 'Meaning'], rows)}\n\nThe last two also exist for ${same}.\n`;
}

function tableOf(key: string): string {
  return key.split('.')[0] ?? key;
}

function nameOf(key: string): string {
  return key.split('.').slice(1).join('.');
}

/** The default, which shows the type too; with the other words of a choice. */
function presetOf(value: Value): string {
  if (isSetting(value) && value.chartDefault !== undefined) return value.chartDefault;
  const preset = isSetting(value) ? written(value.setting, value.setting.default) : value.default;
  if (preset === undefined) return `not set (${typeName(value)})`;
  const text = code(isSetting(value) ? formatToml(preset) : JSON.stringify(preset));
  const { enum: words } = value.schema;
  const others = Array.isArray(words)
    ? words.filter((word) => word !== preset).map((word) => code(JSON.stringify(word)))
    : [];
  return others.length === 0 ? text : `${text}, or ${others.join(', ')}`;
}

function typeName(value: Value): string {
  if (isSetting(value)) return value.setting.kind.name;
  const { type } = value.schema;
  if (Array.isArray(type)) return type.filter((name) => name !== 'null').join(' or ');
  return typeof type === 'string' ? type : 'list';
}
