import { setTimeout as pause } from 'node:timers/promises';

/** Such waits take milliseconds; other processes may use the processors. */
const patienceMs = 15_000;

/** Waits until a condition holds; fails with its name if that takes too long. */
export async function until(
  condition: () => boolean | undefined | Promise<boolean>,
  name = String(condition),
): Promise<void> {
  const end = performance.now() + patienceMs;
  while ((await condition()) !== true) {
    if (performance.now() > end) throw new Error(`waited ${patienceMs} ms for ${name}`);
    await pause(2);
  }
}
