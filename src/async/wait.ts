/** Waiting that a signal ends. */
import { once } from 'node:events';

/**
 * Each lookup has a time limit that ends early. Node's own promise of a timer would make an AbortError with a stack
 * each time.
 * @throws the signal's reason when it aborts first
 */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await unlessAborted(promise, signal).finally(() => clearTimeout(timer));
}

/** A promise's outcome, unless the signal aborts first. @throws the signal's reason; the promise goes on */
export function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** The reason of a signal that reached its time limit. */
export class TimeLimitReached extends Error {
  override readonly name = 'TimeLimitReached';
}

/** A signal that aborts after `ms`, unless it is disposed of before. */
export function timeLimit(
  ms: number,
  sleep: typeof wait = wait,
): Disposable & { readonly signal: AbortSignal } {
  const over = new AbortController();
  const done = new AbortController();
  const late = (): void => over.abort(new TimeLimitReached(`no answer within ${ms} ms`));
  void sleep(ms, done.signal).then(late, () => undefined);
  // Without a reason, each lookup would make a DOMException with a stack.
  return { signal: over.signal, [Symbol.dispose]: () => done.abort('the work has ended') };
}

/** Work with a time limit. @param work its signal aborts at the limit, and with `signal` */
export async function limited<T>(
  ms: number,
  signal: AbortSignal,
  work: (within: AbortSignal) => Promise<T>,
  sleep: typeof wait = wait,
): Promise<T> {
  using limit = timeLimit(ms, sleep);
  return await work(AbortSignal.any([signal, limit.signal]));
}

/** Resolves when the signal aborts; never rejects. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
