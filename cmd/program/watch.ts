/** `--watch`: a result that is shown again, in place on a terminal. */
import { systemClock } from '../../src/async/clock.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import type { Flag } from './flag.ts';
import type { Invocation } from './subcommand.ts';

const watchMs = 2000;
const clearScreen = '\u001B[H\u001B[2J';

export interface Look {
  readonly text: string;
  /** For standard error. */
  readonly problem?: string;
  readonly code: number;
  /** Nothing changes any more. */
  readonly isOver?: boolean;
}

/** Shows once, or with `--watch` until it is over. @returns the exit code */
export async function showAgain(
  { flags, io, stop }: Pick<Invocation<{ watch: Flag<boolean> }>, 'flags' | 'io' | 'stop'>,
  look: () => Promise<Look>,
): Promise<number> {
  const isWatched = flags.watch;
  for (;;) {
    const { text, problem = '', code, isOver = false } = await look();
    io.out(scrub(isWatched && io.isTerminal === true ? `${clearScreen}${text}` : text));
    if (problem !== '') io.err(scrub(problem));
    if (!isWatched || isOver) return code;
    await systemClock.sleep(watchMs, stop);
  }
}
