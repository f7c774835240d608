/**
 * Completion scripts. They hold all words themselves, since a shell that started the program at each press of a key would
 * make its person wait. Where nothing of ours fits, the shell completes files.
 */
import type { CompletedSubcommand, Vocabulary, Word } from './vocabulary.ts';

/** For `source <(archwright completion bash)`. */
export function bashScript(vocabulary: Vocabulary): string {
  const cases = vocabulary.map(({ word, flags, words }) => {
    const all = [...words, ...flags.map((flag) => flag.word)].join(' ');
    return `    ${word}) words='${all}' ;;`;
  });
  const names = [...vocabulary.map(({ word }) => word), '--help', '--version'].join(' ');
  return `# bash completion for archwright
_archwright() {
  local current=\${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${names}'
  else
    case \${COMP_WORDS[1]} in
${cases.join('\n')}
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _archwright archwright kubectl-archwright
`;
}

/** For a file `_archwright` in a directory of `fpath`, or `source <(archwright completion zsh)`. */
export function zshScript(vocabulary: Vocabulary): string {
  const cases = vocabulary.map((subcommand) => {
    const items = described([...plainWords(subcommand), ...subcommand.flags], zshQuoted);
    return `    ${subcommand.word}) items=(${items.join(' ')}) ;;`;
  });
  const names = described(
    [
      ...vocabulary,
      { word: '--help', help: 'Prints help.' },
      { word: '--version', help: 'Names the version.' },
    ],
    zshQuoted,
  );
  return `#compdef archwright kubectl-archwright
# zsh completion for archwright
_archwright() {
  local -a items
  if (( CURRENT == 2 )); then
    items=(${names.join(' ')})
  else
    case $words[2] in
${cases.join('\n')}
    esac
  fi
  _describe archwright items || _files
}
if [ "$funcstack[1]" = _archwright ]; then _archwright "$@"; else compdef _archwright archwright kubectl-archwright; fi
`;
}

/** For `archwright completion fish | source`. */
export function fishScript(vocabulary: Vocabulary): string {
  const first = vocabulary.map(
    ({ word, help }) =>
      `complete -c archwright -n __fish_use_subcommand -a ${word} -d ${fishQuoted(firstSentence(help))}`,
  );
  const rest = vocabulary.flatMap(({ word, flags, words }) => {
    const when = `-n ${fishQuoted(`__fish_seen_subcommand_from ${word}`)}`;
    return [
      ...words.map((each) => `complete -c archwright ${when} -a ${each}`),
      ...flags.map(
        (flag) =>
          `complete -c archwright ${when} -l ${flag.word.slice(2)} -d ${fishQuoted(firstSentence(flag.help))}`,
      ),
    ];
  });
  return `# fish completion for archwright\n${[...first, ...rest].join('\n')}\n`;
}

/**
 * For an executable file `kubectl_complete-archwright` on the PATH, which kubectl asks about words after `kubectl archwright`. What it
 * prints is as kubectl's library for commands wants it: a word each line, then `:0`, by which files fit where no word does.
 */
export function kubectlScript(vocabulary: Vocabulary): string {
  const cases = vocabulary.map(
    ({ word, flags, words }) =>
      `    ${word}) words='${[...words, ...flags.map((flag) => flag.word)].join(' ')}' ;;`,
  );
  const names = [...vocabulary.map(({ word }) => word), '--help', '--version'].join(' ');
  return `#!/bin/sh
# kubectl completion for archwright
words=
if [ $# -le 1 ]; then
  words='${names}'
else
  case $1 in
${cases.join('\n')}
  esac
fi
for last in "$@"; do :; done
for word in $words; do
  case $word in "$last"*) printf '%s\\n' "$word" ;; esac
done
echo :0
`;
}

function plainWords({ words }: CompletedSubcommand): readonly Word[] {
  return words.map((word) => ({ word, help: '' }));
}

function described(words: readonly Word[], quoted: (text: string) => string): readonly string[] {
  return words.map(({ word, help }) => {
    const text = firstSentence(help);
    return quoted(text === '' ? word : `${word.replaceAll(':', '\\:')}:${text}`);
  });
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
