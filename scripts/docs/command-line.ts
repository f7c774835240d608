/** The page `docs/reference/command-line.md`: each subcommand with its own flags. */
import { describeFlags } from '../../cmd/program/flags.ts';
import type { Subcommand } from '../../cmd/program/subcommand.ts';
import { subcommands } from '../../cmd/program/subcommands.ts';
import { code } from './markdown.ts';

const introduction = `# Command line

Each [setting](settings.md) that a subcommand uses is also a flag. \`archwright help SUBCOMMAND\` lists them. \`--config FILE\` sets the configuration file.
\`archwright --version\` prints version and commit. Exit code 2: wrong usage or a broken configuration.
`;

/** Subcommands with a page of their own, beyond their help text. */
const guides: Readonly<Record<string, string>> = {
  webhook: '[architecture](../internals/architecture.md#webhook)',
  agent: '[architecture](../internals/architecture.md#agent), [`--check`](../operate/agent-check.md)',
  controller: '[controller](../operate/controller.md)',
  inspect: '[inspect](../use/inspect.md)',
  explain: '[explain](../use/explain.md)',
  report: '[report](../use/report.md)',
  check: '[check](../use/check.md)',
  rollout: '[rollout](../use/rollout.md)',
  config: '[settings](settings.md)',
  completion: '[kubectl plugin](../use/README.md#kubectl-plugin)',
  status: '[status](../operate/status.md)',
  clean: '[leaving](../operate/leaving.md)',
};

interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly subcommand: Subcommand;
}

export async function commandLinePage(): Promise<string> {
  const entries = await Promise.all(
    Object.entries(subcommands).map(async ([name, entry]) => ({
      name,
      summary: entry.summary,
      ...(await entry.load()),
    })),
  );
  const firstOf = new Map<string, string>();
  for (const { name, subcommand } of entries)
    for (const { help } of describeFlags(subcommand, 'own')) if (!firstOf.has(help)) firstOf.set(help, name);
  return [introduction, ...entries.map((entry) => section(entry, firstOf))].join('\n');
}

/** Long help texts of several subcommands appear once, in the first of them. */
const longHelp = 60;

/** @param firstOf the first subcommand with each help text */
function section({ name, summary, subcommand }: Entry, firstOf: ReadonlyMap<string, string>): string {
  const flags = describeFlags(subcommand, 'own').map(({ title, help }) => {
    const first = firstOf.get(help) ?? name;
    return `- ${code(title)}: ${first === name || help.length < longHelp ? help : `as in [${first}](#archwright-${first}).`}`;
  });
  const guide = guides[name];
  return [
    `## archwright ${name}\n`,
    ...(subcommand.usage === '[FLAGS]' ? [] : [`${code(`${name} ${subcommand.usage}`)}\n`]),
    `${guide === undefined ? subcommand.description : `${summary[0]?.toUpperCase()}${summary.slice(1)}: ${guide}.`}\n`,
    ...(flags.length === 0 ? [] : [`${flags.join('\n')}\n`]),
  ].join('\n');
}
