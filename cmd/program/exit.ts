/** How a subcommand ends: exit codes, and errors that have one. Only `main.ts` turns errors into exit codes. */

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
