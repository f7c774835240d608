/** `archwright completion`: a script that completes subcommands and flags in a shell, made from their descriptions. */
import { bashScript, fishScript, kubectlScript, zshScript } from './completion/scripts.ts';
import { vocabularyOf, type Vocabulary } from './completion/vocabulary.ts';
import { didYouMean } from '../src/names/suggestion.ts';
import { exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: 'bash|zsh|fish|kubectl',
  description:
    'Prints a script that completes subcommands and flags: `source <(archwright completion bash)`, the same for zsh, and ' +
    '`archwright completion fish | source`. For `kubectl archwright`, `archwright completion kubectl` prints an executable ' +
    '`kubectl_complete-archwright` for the PATH.',
  settings: 'none',
  flags: {},
  run,
};

const scripts: Readonly<Record<string, (vocabulary: Vocabulary) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
  kubectl: kubectlScript,
};

async function run({ positionals, io, subcommands }: Invocation): Promise<number> {
  const [shell, ...more] = positionals;
  const known = Object.keys(scripts);
  if (shell === undefined || more.length > 0) {
    throw new UsageError(`name one of ${known.join(', ')}`);
  }
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined) throw new UsageError(`unknown shell ${shell}${didYouMean(shell, known)}`);
  io.out(script(await vocabularyOf(subcommands)));
  return exitCodes.success;
}
