/** The page `docs/reference/command-line.md`: each subcommand with its own flags. */
import type { OwnFlag, Subcommand } from '../../cmd/program/subcommand.ts';
import { subcommands } from '../../cmd/program/subcommands.ts';
import { code } from './markdown.ts';

const introduction = `# Command line

- \`--help\` prints a short help, \`archwright help SUBCOMMAND\` one with all settings; \`archwright --version\` version and commit.
- Each [setting](settings.md) that a subcommand uses is also a flag, unless the subcommand has another flag of that name. \`--config FILE\` names the
  configuration.
- Exit code 2: wrong usage or a broken configuration.
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
  return [introduction, ...entries.map(section)].join('\n');
}

function section({ name, summary, subcommand }: { name: string; summary: string; subcommand: Subcommand }): string {
  const flags = Object.entries(subcommand.flags).map(([flag, described]) => `- ${titleOf(flag, described)}: ${described.help}`);
  const guide = guides[name];
  return [
    `## archwright ${name}\n`,
    ...(subcommand.usage === '[FLAGS]' ? [] : [`${code(`${name} ${subcommand.usage}`)}\n`]),
    `${guide === undefined ? subcommand.description : `${summary[0]?.toUpperCase()}${summary.slice(1)}: ${guide}.`}\n`,
    ...(flags.length === 0 ? [] : [`${flags.join('\n')}\n`]),
  ].join('\n');
}

function titleOf(name: string, { short, value }: OwnFlag): string {
  return code(`${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`);
}
