/** A line on a terminal that shows the progress of long work. Other lines overwrite it. */
import type { Streams } from './subcommand.ts';

export interface Progress {
  show(text: string): void;
  end(): void;
}

export const eraseLine = '\u001b[2K';

/** Shows nothing if standard error is not a terminal. */
export function createProgress({
  err,
  isErrTerminal = false,
}: Pick<Streams, 'err' | 'isErrTerminal'>): Progress {
  let isShown = false;
  return {
    show: (text) => {
      if (!isErrTerminal) return;
      isShown = true;
      err(`${eraseLine}${text}\r`);
    },
    end: () => {
      if (isShown) err(eraseLine);
      isShown = false;
    },
  };
}
