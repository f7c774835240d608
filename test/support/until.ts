import { setTimeout as pause } from 'node:timers/promises';

/** Only for what never happens: such waits take milliseconds, but 15 s were too short at a load of 30. */
const defaultPatienceMs = 60_000;

/** Waits until a condition holds. Rejects with its name if that takes longer than `patienceMs`. */
export async function until(
  condition: () => boolean | undefined | Promise<boolean>,
  name = String(condition),
  patienceMs = defaultPatienceMs,
): Promise<void> {
  const end = performance.now() + patienceMs;
  while ((await condition()) !== true) {
    if (performance.now() > end) throw new Error(`waited ${patienceMs} ms for ${name}`);
    await pause(2);
  }
}
