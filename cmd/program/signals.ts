/** Stop signals: the first SIGTERM or SIGINT asks the program to stop, a second one exits at once. */
import { constants } from 'node:os';

const names = ['SIGTERM', 'SIGINT'] as const;

/** @returns aborts on the first stop signal; the reason is the signal's name */
export function onStopSignal(exit: (code: number) => void = (code) => process.exit(code)): AbortSignal {
  const controller = new AbortController();
  for (const name of names) {
    process.on(name, () => {
      if (controller.signal.aborted) exit(signalCode(name));
      else controller.abort(name);
    });
  }
  return controller.signal;
}

/** The exit code after a stop signal. `signal` must have aborted. */
export function stoppedCode({ reason }: AbortSignal): number {
  return signalCode(names.find((name) => name === reason) ?? 'SIGTERM');
}

function signalCode(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}
