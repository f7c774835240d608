/** The chart's `README.md`: how to install it in prose, and the table of every value. */
import { formatToml } from '../../../src/policy/configuration/toml.ts';
import { written } from '../../../src/policy/settings/setting.ts';
import { code, table } from '../markdown.ts';
import { chartSections, isSetting } from './chart.ts';
import { chartIntroduction } from './introduction.ts';
import type { Value } from './value.ts';

/** Makes the page. */
export function chartReadme(): string {
  const sections = chartSections().map(({ title, values }) => {
    const rows = values.map((value) => [code(value.key), value.help, typeName(value), presetOf(value)]);
    return `### ${title}\n\n${table(['Value', 'Meaning', 'Type', 'Default'], rows)}\n`;
  });
  return [chartIntroduction, '## Values\n', ...sections].join('\n');
}

function typeName(value: Value): string {
  if (isSetting(value)) return value.setting.kind.name;
  const { type, enum: words } = value.schema;
  if (Array.isArray(words)) return words.map((word) => code(String(word))).join(', ');
  if (Array.isArray(type)) return type.filter((name) => name !== 'null').join(' or ');
  return typeof type === 'string' ? type : 'list';
}

function presetOf(value: Value): string {
  if (isSetting(value)) {
    if (value.chartDefault !== undefined) return value.chartDefault;
    const preset = written(value.setting, value.setting.default);
    return preset === undefined ? 'not set' : code(formatToml(preset));
  }
  return value.default === undefined ? 'not set' : code(JSON.stringify(value.default));
}
