/** What changes on a terminal: a line that shows progress, and with `--watch` the whole result. */
import { systemClock } from '../../src/async/clock.ts';
import { KubeError } from '../../src/kube/api/errors.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { exitCodes } from './exit.ts';
import type { Flag } from './flag.ts';
import type { Invocation, Streams } from './subcommand.ts';
import { print, type Printer } from './table.ts';

export const eraseLine = '\u001b[2K';

/** Shows nothing if standard error is not a terminal. */
export function createProgress({ err, isErrTerminal }: Pick<Streams, 'err' | 'isErrTerminal'>) {
  let isShown = false;
  return {
    show: (text: string): void => {
      if (!isErrTerminal) return;
      isShown = true;
      err(`${eraseLine}${text}\r`);
    },
    end: (): void => {
      if (isShown) err(eraseLine);
      isShown = false;
    },
  };
}

const watchMs = 2000;
const clearScreen = '\u001B[H\u001B[2J';

interface Look {
  readonly document: unknown;
  readonly text: string;
  readonly code: number;
  /** Nothing changes any more. */
  readonly isOver?: boolean;
}

/** Shows once, or with `--watch` until it is over, even if the API server fails. @returns the exit code */
export async function showAgain(
  { flags, io, stop }: Pick<Invocation<{ watch: Flag<boolean> }>, 'flags' | 'io' | 'stop'> & Printer,
  look: () => Promise<Look>,
): Promise<number> {
  const first = flags.watch && io.isTerminal === true ? clearScreen : '';
  const out = (text: string): void => io.out(scrub(`${first}${text}`));
  for (;;) {
    const seen = flags.watch ? await look().catch(unanswered) : await look();
    print({ flags, io: { out } }, seen.document, seen.text);
    if (!flags.watch || seen.isOver === true) return seen.code;
    await systemClock.sleep(watchMs, stop);
  }
}

function unanswered(error: unknown): Look {
  if (!(error instanceof KubeError) || !error.temporary) throw error;
  const text = `the cluster does not answer: ${error.message}\n`;
  return { document: { error: error.message }, text, code: exitCodes.unanswered };
}
