/**
 * `archwright completion`: a script that completes subcommands, flags and their values in a shell. It holds all words
 * itself, because starting the program at each press of a key would be slow. If no word fits, the shell
 * completes files.
 */
import { didYouMean } from '../src/names/suggestion.ts';
import { describeFlags, describeSettings } from './program/flags.ts';
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

interface Word {
  /** A flag has its dashes. */
  readonly word: string;
  readonly help: string;
}

interface CompletedFlag extends Word {
  /** All ways to write it. */
  readonly words: readonly string[];
  /** Every possible value, if there are few. */
  readonly values: readonly string[];
}

interface CompletedSubcommand extends Word {
  readonly flags: readonly CompletedFlag[];
  /** Words that are no flags, such as the shells of `completion`. */
  readonly words: readonly string[];
}

type Vocabulary = readonly CompletedSubcommand[];

/** The words that a shell can complete. Loads every subcommand's description. */
export async function vocabularyOf(entries: Invocation['subcommands']): Promise<Vocabulary> {
  return await Promise.all(
    Object.entries(entries).map(async ([word, entry]) => {
      const { subcommand } = await entry.load();
      return { word, help: entry.summary, flags: flagsOf(subcommand), words: wordsOf(subcommand) };
    }),
  );
}

function flagsOf(subcommand: Subcommand): readonly CompletedFlag[] {
  const own = describeFlags(subcommand).map((flag) => ({ ...flag, word: flag.words.at(-1) ?? '' }));
  const settings = describeSettings(subcommand).flatMap((flag) =>
    flag.words
      .filter((word, index) => index === 0 || word.startsWith('--no-'))
      .map((word) => ({ ...flag, word })),
  );
  return [...own, ...settings];
}

/** The first words of a usage such as `check [FLAGS] [FILE] | print [FLAGS] [FILE]`. */
function wordsOf({ usage }: Subcommand): readonly string[] {
  const words = usage.includes(' | ') ? usage.split(' | ') : (usage.split(' ')[0] ?? '').split('|');
  return words.map((alternative) => alternative.split(' ')[0] ?? '').filter((word) => /^[a-z]+$/.test(word));
}

/** For `source <(archwright completion bash)`. */
export function bashScript(vocabulary: Vocabulary): string {
  const { names, cases, values } = plainWords(vocabulary);
  return `# bash completion for archwright
_archwright() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} words
  # Bash splits --flag=value at the equals sign.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${names}'
  else
    case \${COMP_WORDS[1]} in
${cases}
    esac
    case "\${COMP_WORDS[1]} $previous" in
${values}
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _archwright archwright kubectl-archwright
`;
}

/** For a file `_archwright` in a directory of `fpath`, or `source <(archwright completion zsh)`. */
export function zshScript(vocabulary: Vocabulary): string {
  const cases = vocabulary.map(({ word, words, flags }) => {
    const plain = words.map((each) => ({ word: each, help: '' }));
    return `    ${word}) items=(${zshItems([...plain, ...flags])}) ;;`;
  });
  const values = valueCases(vocabulary, (all) => `items=(${all.map(zshQuoted).join(' ')})`);
  const help = { word: '--help', help: 'Prints help.' };
  const version = { word: '--version', help: 'Prints the version.' };
  return `#compdef archwright kubectl-archwright
# zsh completion for archwright
_archwright() {
  local -a items
  if (( CURRENT == 2 )); then
    items=(${zshItems([...vocabulary, help, version])})
  else
    case $words[2] in
${cases.join('\n')}
    esac
    case "$words[2] $words[CURRENT-1]" in
${values}
    esac
  fi
  _describe archwright items || _files
}
if [ "$funcstack[1]" = _archwright ]; then _archwright "$@"; else compdef _archwright archwright kubectl-archwright; fi
`;
}

export function fishScript(vocabulary: Vocabulary): string {
  const first = vocabulary.map(
    ({ word, help }) =>
      `complete -c archwright -n __fish_use_subcommand -a ${word} -d ${fishQuoted(firstSentence(help))}`,
  );
  const rest = vocabulary.flatMap(({ word, flags, words }) => {
    const when = `-n ${fishQuoted(`__fish_seen_subcommand_from ${word}`)}`;
    return [
      ...words.map((each) => `complete -c archwright ${when} -a ${each}`),
      ...flags.map(({ word: flag, words: all, help, values }) => {
        const short = all.find((each) => /^-\w$/.test(each));
        const options = [
          `-l ${flag.slice(2)}`,
          ...(short === undefined ? [] : [`-s ${short.slice(1)}`]),
          ...(values.length === 0 ? [] : [`-x -a ${fishQuoted(values.join(' '))}`]),
        ];
        return `complete -c archwright ${when} ${options.join(' ')} -d ${fishQuoted(firstSentence(help))}`;
      }),
    ];
  });
  return `# fish completion for archwright\n${[...first, ...rest].join('\n')}\n`;
}

/**
 * For a file `kubectl_complete-archwright` on the PATH, which kubectl runs for the words after `kubectl
 * archwright`. The format is that of kubectl's library: one word per line, then `:0`, which allows files.
 */
export function kubectlScript(vocabulary: Vocabulary): string {
  const { names, cases, values } = plainWords(vocabulary);
  return `#!/bin/sh
# kubectl completion for archwright
words= last= previous=
if [ $# -le 1 ]; then
  words='${names}'
else
  case $1 in
${cases}
  esac
fi
for word in "$@"; do previous=$last last=$word; done
case "$1 $previous" in
${values}
esac
for word in $words; do
  case $word in "$last"*) printf '%s\\n' "$word" ;; esac
done
echo :0
`;
}

/** The first words of a command line, and a shell's cases that set `words` for each subcommand and value. */
function plainWords(vocabulary: Vocabulary) {
  const cases = vocabulary.map(({ word, flags, words }) => {
    const all = [...words, ...flags.map((flag) => flag.word)].join(' ');
    return `    ${word}) words='${all}' ;;`;
  });
  const names = [...vocabulary.map(({ word }) => word), '--help', '--version'].join(' ');
  return {
    names,
    cases: cases.join('\n'),
    values: valueCases(vocabulary, (all) => `words='${all.join(' ')}'`),
  };
}

/** A shell's cases for a subcommand and a flag with known values. @param assign sets them as suggestions */
function valueCases(vocabulary: Vocabulary, assign: (values: readonly string[]) => string): string {
  const cases = vocabulary.flatMap(({ word, flags }) =>
    flags
      .filter(({ values }) => values.length > 0)
      .map(({ words, values }) => {
        const patterns = words.map((flag) => `'${word} ${flag}'`).join('|');
        return `    ${patterns}) ${assign(values)} ;;`;
      }),
  );
  return cases.join('\n');
}

function zshItems(words: readonly Word[]): string {
  const items = words.map(({ word, help }) => {
    const text = firstSentence(help);
    return zshQuoted(text === '' ? word : `${word.replaceAll(':', '\\:')}:${text}`);
  });
  return items.join(' ');
}

/** A shell shows one line for each word. */
function firstSentence(help: string): string {
  const [sentence = ''] = help.replaceAll('`', '').split(/[.:;]\s/, 1);
  return sentence.replace(/\.$/, '').slice(0, 80);
}

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
