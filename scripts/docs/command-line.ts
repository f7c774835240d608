/** The page `docs/command-line.md`: what `--help` says, for every subcommand. */
import { programHelp, subcommandHelp } from '../../cmd/help.ts';
import { subcommands } from '../../cmd/subcommands.ts';

/** Makes the page. */
export async function commandLinePage(): Promise<string> {
  const sections = await Promise.all(
    Object.entries(subcommands).map(async ([name, entry]) => {
      const { subcommand } = await entry.load();
      return `## archwright ${name}\n\n${block(subcommandHelp(name, subcommand))}`;
    }),
  );
  return ['# Command line\n', block(programHelp(subcommands)), ...sections].join('\n');
}

function block(text: string): string {
  return `\`\`\`text\n${text}\`\`\`\n`;
}
