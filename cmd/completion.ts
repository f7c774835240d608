/** `archwright completion`: scripts with all words: starting the program at each key would be slow. */
import { didYouMean } from '../src/names/suggestion.ts';
import { describeFlags, describeSettings, type DescribedFlag } from './program/flags.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: 'bash|zsh|fish|kubectl',
  description:
    'Prints a script that completes subcommands, flags and their values. Use `source <(archwright completion bash)`, ' +
    'the same for zsh, and `archwright completion fish | source`. For `kubectl archwright`, `archwright ' +
    'completion kubectl` prints an executable `kubectl_complete-archwright` for the PATH.',
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
  const shell = positionals.join(' ');
  const known = Object.keys(scripts);
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (!script) throw new UsageError(`name one of ${known.join(', ')}${didYouMean(shell, known)}`);
  io.out(script(await vocabularyOf(subcommands)));
  return exitCodes.success;
}

interface Word {
  readonly word: string;
  readonly help: string;
}

type Vocabulary = readonly (Word & {
  readonly flags: readonly Pick<DescribedFlag, 'words' | 'help' | 'values'>[];
  /** Words that are no flags, such as the shells of `completion`. */
  readonly words: readonly string[];
})[];

/** The words that a shell can complete. Loads every subcommand's description. */
export async function vocabularyOf(entries: Invocation['subcommands']): Promise<Vocabulary> {
  return await Promise.all(
    Object.entries(entries).map(async ([word, entry]) => {
      const { subcommand } = await entry.load();
      const flags = [...describeFlags(subcommand), ...describeSettings(subcommand)];
      return { word, help: entry.summary, flags, words: wordsOf(subcommand) };
    }),
  );
}

/** The first words of a usage such as `check [FLAGS] [FILE] | print [FLAGS] [FILE]`. */
function wordsOf({ usage }: Subcommand): readonly string[] {
  const words = usage.includes(' | ') ? usage.split(' | ') : (usage.split(' ')[0] ?? '').split('|');
  return words.map((alternative) => alternative.split(' ')[0] ?? '').filter((word) => /^[a-z]+$/.test(word));
}

/** Used by `source <(archwright completion bash)`. */
export function bashScript(vocabulary: Vocabulary): string {
  return `# bash completion for archwright
${wordsFunction(vocabulary)}
_archwright() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} subcommand=\${COMP_WORDS[1]}
  # Bash splits --flag=value at the equals sign.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  [ "$COMP_CWORD" -gt 1 ] || subcommand= previous=
  mapfile -t COMPREPLY < <(compgen -W "$(_archwright_words "$subcommand" "$previous" | cut -f 1)" -- "$current")
}
complete -o default -F _archwright archwright kubectl-archwright
`;
}

/** A file `_archwright` in a directory of `fpath`, or `source <(archwright completion zsh)`. */
export function zshScript(vocabulary: Vocabulary): string {
  return `#compdef archwright kubectl-archwright
# zsh completion for archwright
${wordsFunction(vocabulary)}
_archwright() {
  local subcommand=$words[2] previous=$words[CURRENT-1]
  (( CURRENT > 2 )) || subcommand= previous=
  local -a items=(\${(f)"$(_archwright_words "$subcommand" "$previous")"})
  items=(\${items//:/\\\\:})
  items=(\${items/$'\\t'/:})
  _describe archwright items || _files
}
if [ "$funcstack[1]" = _archwright ]; then _archwright "$@"; else compdef _archwright archwright kubectl-archwright; fi
`;
}

/**
 * For a file `kubectl_complete-archwright` on the PATH, which kubectl runs for the words after `kubectl
 * archwright`. The format is that of kubectl's library: one word per line, then `:0`, which allows files.
 */
export function kubectlScript(vocabulary: Vocabulary): string {
  return `#!/bin/sh
# kubectl completion for archwright
${wordsFunction(vocabulary)}
subcommand= previous= last=
[ $# -lt 2 ] || subcommand=$1
for word in "$@"; do previous=$last last=$word; done
_archwright_words "$subcommand" "$previous" | cut -f 1 | while read -r word; do
  case $word in "$last"*) printf '%s\\n' "$word" ;; esac
done
echo :0
`;
}

/** Prints the words that can follow a subcommand and the word before (both may be empty), with their help. */
function wordsFunction(vocabulary: Vocabulary): string {
  const general = [
    { word: '--help', help: 'Prints help.' },
    { word: '--version', help: 'Prints the version.' },
  ];
  const cases = vocabulary.flatMap(({ word, flags, words }) => [
    ...flags
      .filter(({ values }) => values.length > 0)
      .map((flag) => {
        const patterns = flag.words.map((each) => `'${word} ${each}'`).join('|');
        return `    ${patterns}) ${printed(flag.values.map(withoutHelp))} ;;`;
      }),
    `    '${word} '*) ${printed([...words.map(withoutHelp), ...flags.flatMap(longWords)])} ;;`,
  ]);
  return `_archwright_words() {
  case "$1 $2" in
    ' '*) ${printed([...vocabulary, ...general])} ;;
${cases.join('\n')}
  esac
}`;
}

function withoutHelp(word: string): Word {
  return { word, help: '' };
}

function longWords({ words, help }: Pick<DescribedFlag, 'words' | 'help'>): readonly Word[] {
  return words.filter((word) => word.startsWith('--')).map((word) => ({ word, help }));
}

function printed(words: readonly Word[]): string {
  const lines = words.map(({ word, help }) => shellQuoted([word, firstSentence(help)].join('\t').trimEnd()));
  return `printf '%s\\n' ${lines.join(' ')}`;
}

/** For `archwright completion fish | source`. A shell of POSIX chooses the words, as for kubectl. */
export function fishScript(vocabulary: Vocabulary): string {
  const script = `${wordsFunction(vocabulary)}\n_archwright_words "$1" "$2"`;
  return `# fish completion for archwright
function __archwright_words
  set -l words (commandline -opc)
  sh -c '${script.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}' sh "$words[2]" "$words[-1]"
end
complete -c archwright -a '(__archwright_words)'
`;
}

function firstSentence(help: string): string {
  const [sentence = ''] = help.replaceAll('`', '').split(/[.:;]\s/, 1);
  return sentence.replace(/\.$/, '').slice(0, 80);
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
