/** Controllers that are killed at a step, one after the other (`stopping-controller.ts`). */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import type { Server, Settings, StartOptions } from '../archwright.ts';

const entry = fileURLToPath(new URL('stopping-controller.ts', import.meta.url));
/** A leader waits at most half a minute by design before it acts. */
const mostMs = 120_000;
const shownLogCharacters = 3000;

export interface KillOptions {
  readonly settings?: Settings;
  /** Runs after its start, and before its end is waited for. */
  readonly meanwhile?: (name: string) => Promise<void>;
}

export interface Victims {
  /**
   * Starts a controller that dies at this step, and waits until it has.
   * @throws Error if it lives on
   */
  kill(step: string, options?: KillOptions): Promise<void>;
  /** Starts one that lives. */
  live(name: string, settings?: Settings): Promise<Server>;
  /** The steps that any of them reached. */
  passed(): readonly string[];
}

/**
 * @param directory for a file of its own
 * @param start starts a controller
 */
export function createVictims(
  t: Test,
  directory: string,
  start: (options: Omit<StartOptions, 'tls'>) => Promise<Server>,
): Victims {
  const file = join(directory, 'steps');
  let count = 0;
  return {
    kill: async (step, { settings = {}, meanwhile } = {}) => {
      const name = `victim-${(count += 1)}-${step.replaceAll('/', '-')}`;
      const env = { KILL_AT: step, STEPS_FILE: file };
      const { process } = await start({ name, entry, env, settings, mayEnd: true });
      await meanwhile?.(name);
      const timer = new AbortController();
      const late = pause(mostMs, 'lives on', { signal: timer.signal });
      const how = await Promise.race([process.ended, late]);
      timer.abort();
      late.catch(() => undefined);
      t.equal(how, 'SIGKILL', `killed at ${step}`);
      if (how !== 'SIGKILL') throw new Error(`${step}:\n${process.log().slice(-shownLogCharacters)}`);
    },
    live: (name, settings = {}) => start({ name, entry, env: { STEPS_FILE: file }, settings }),
    passed: () =>
      existsSync(file) ? [...new Set(readFileSync(file, 'utf8').split('\n').filter(Boolean))] : [],
  };
}
