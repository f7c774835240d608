/**
 * How a subcommand ends: exit codes, errors that have one, and stop signals. Only `main.ts` turns errors into
 * exit codes.
 */
import { constants } from 'node:os';

/** `failure`: something was found, such as a missing image. `unanswered`: the result is incomplete. */
export const exitCodes = { success: 0, failure: 1, usage: 2, unanswered: 3 } as const;

/** Wrong usage. The message says what to change. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A failure with its own exit code. The message is printed after the name of the subcommand. */
export class Failure extends Error {
  readonly exitCode: number;
  override readonly name = 'Failure';

  constructor(message: string, exitCode: number = exitCodes.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}

const stopSignals = ['SIGTERM', 'SIGINT'] as const;

/**
 * The first SIGTERM or SIGINT asks the program to stop, a second one exits at once.
 * @returns aborts on the first; the reason is the signal's name
 */
export function onStopSignal(exit: (code: number) => void = (code) => process.exit(code)): AbortSignal {
  const controller = new AbortController();
  for (const name of stopSignals) {
    process.on(name, () => {
      if (controller.signal.aborted) exit(signalCode(name));
      else controller.abort(name);
    });
  }
  return controller.signal;
}

/** The exit code after a stop signal. `signal` must have aborted. */
export function stoppedCode({ reason }: AbortSignal): number {
  return signalCode(stopSignals.find((name) => name === reason) ?? 'SIGTERM');
}

function signalCode(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}
