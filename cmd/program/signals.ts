/** Stop signals: the first SIGTERM or SIGINT asks the program to stop, a second one exits at once. */
import { constants } from 'node:os';

export interface StopSignal {
  /** Aborts on the first signal. The reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Stops listening. */
  close(): void;
}

const names = ['SIGTERM', 'SIGINT'] as const;

/** Listens for stop signals of this process. */
export function onStopSignal(exit: (code: number) => void = (code) => process.exit(code)): StopSignal {
  const controller = new AbortController();
  const listener = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) exit(signalCode(name));
    else controller.abort(name);
  };
  for (const name of names) process.on(name, listener);
  return {
    signal: controller.signal,
    close: () => {
      for (const name of names) process.off(name, listener);
    },
  };
}

/** Resolves when the program is told to stop. */
export function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The exit code after a stop signal. `signal` must have aborted. */
export function stoppedCode({ reason }: AbortSignal): number {
  return signalCode(names.find((name) => name === reason) ?? 'SIGTERM');
}

/** The exit code that a shell reports for a signal. */
function signalCode(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}
