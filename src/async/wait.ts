/** Waiting that a signal ends. */
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';

/** @throws the signal's reason when it aborts first */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/**
 * The outcome of a promise, unless the signal aborts first. The promise itself goes on.
 * @throws what the promise rejects with, or the signal's reason
 */
export function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/**
 * Asks for something that ends in time, by a clock that tests inject.
 * @param ask its signal aborts when the time is over, or the asker's does
 * @throws what `ask` throws
 */
export async function limited<T>(
  ms: number,
  asker: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
  sleep: typeof wait = wait,
): Promise<T> {
  const over = new AbortController();
  const done = new AbortController();
  const late = (): void => over.abort(new Error(`no answer within ${ms} ms`));
  void sleep(ms, done.signal).then(late, () => undefined);
  try {
    return await ask(AbortSignal.any([asker, over.signal]));
  } finally {
    done.abort();
  }
}

/** Resolves when the signal aborts; never rejects. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
