/** The page `docs/reference/command-line.md`: each subcommand with its own flags, and the groups of settings that it takes as flags. */
import { settingsOf } from '../../cmd/program/flags.ts';
import type { OwnFlag, Subcommand } from '../../cmd/program/subcommand.ts';
import { subcommands } from '../../cmd/program/subcommands.ts';
import { anchorOf, code, table } from './markdown.ts';
import { settingGroups } from './settings.ts';

const introduction = `# Command line

\`\`\`text
archwright SUBCOMMAND [FLAGS]
archwright --version
\`\`\`

- \`--config FILE\` names the configuration in TOML; \`--help\` prints a short help, \`archwright help SUBCOMMAND\` one with all settings.
  \`completion\` has no configuration.
- Each [setting](settings.md) that a subcommand uses is also a flag, such as \`--preferred-architecture\` for
  \`preferredArchitecture\`, unless the subcommand has another flag of that name.
`;

/** Subcommands with a page of their own, which says more than their help text. */
const guides: Readonly<Record<string, string>> = {
  webhook: '[architecture](../internals/architecture.md#webhook)',
  agent: '[architecture](../internals/architecture.md#agent), [`--check`](../operate/agent-check.md)',
  controller: '[controller](../operate/controller.md)',
  inspect: '[inspect](../use/inspect.md)',
  explain: '[explain](../use/explain.md)',
  report: '[report](../use/report.md)',
  check: '[check](../use/check.md)',
  status: '[status](../operate/status.md)',
  clean: '[leaving](../operate/leaving.md)',
};

/** Makes the page. */
export async function commandLinePage(): Promise<string> {
  const entries = await Promise.all(
    Object.entries(subcommands).map(async ([name, entry]) => ({ name, summary: entry.summary, ...(await entry.load()) })),
  );
  const index = table(
    ['Subcommand', 'What it does'],
    entries.map(({ name, summary }) => [`[${code(name)}](#${anchorOf(`archwright ${name}`)})`, summary]),
  );
  const users = table(['Settings', 'Used by'], settingGroups.map((group) => [
    `[${group.title}](settings.md#${anchorOf(group.title)})`,
    entries.flatMap(({ name, subcommand }) => useOf(name, subcommand, Object.keys(group.settings))).join(', '),
  ]));
  return [introduction, `${index}\n`, `${users}\n`, ...entries.map(({ name, subcommand }) => section(name, subcommand))].join('\n');
}

function section(name: string, subcommand: Subcommand): string {
  const flags = Object.entries(subcommand.flags).map(([flag, described]) => [titleOf(flag, described), described.help]);
  const guide = guides[name];
  return [
    `## archwright ${name}\n`,
    `\`\`\`text\narchwright ${name} ${subcommand.usage}\n\`\`\`\n`,
    `${guide === undefined ? subcommand.description : `Guide: ${guide}.`}\n`,
    ...(flags.length === 0 ? [] : [`${table(['Flag', 'Meaning'], flags)}\n`]),
  ].join('\n');
}

function titleOf(name: string, { short, value }: OwnFlag): string {
  return code(`${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`);
}

/** Up to this many settings are named. */
const fewSettings = 4;

/** The subcommand, if it uses settings of the group: all of them, or those in parentheses. */
function useOf(name: string, subcommand: Subcommand, group: readonly string[]): string[] {
  const used = Object.keys(settingsOf(subcommand)).filter((key) => group.includes(key));
  if (used.length === 0) return [];
  if (used.length === group.length) return [code(name)];
  return [`${code(name)} (${used.length > fewSettings ? `${used.length} of ${group.length}` : used.map(code).join(', ')})`];
}
