/** Controllers that are killed at a step, one after the other (`../archwright/controller.ts`). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import type { Tuning } from '../archwright/controller.ts';
import type { ControllerOptions, Server, Settings } from '../archwright/archwright.ts';

import { killedAt } from './steps.ts';

export const stoppingController = fileURLToPath(new URL('../archwright/controller.ts', import.meta.url));
/** A leader waits at most half a minute by design before it acts. */
const timeoutMs = 120_000;
const shownLogCharacters = 3000;

export type KillableControllers = ReturnType<typeof createKillableControllers>;

/**
 * @param directory for its files
 * @param start starts a controller
 */
export function createKillableControllers(
  t: Test,
  directory: string,
  start: (options: Omit<ControllerOptions, 'tls'>) => Promise<Server>,
) {
  const file = join(directory, 'steps');
  let count = 0;
  return {
    /**
     * Starts a controller that dies at this step, and waits until it has.
     * @param options.meanwhile runs after its start
     * @throws Error if it keeps running
     */
    kill: async (
      step: string,
      options: {
        settings?: Settings;
        tuning?: Tuning;
        meanwhile?: (name: string) => Promise<void>;
      } = {},
    ): Promise<void> => {
      const { settings = {}, tuning = {}, meanwhile } = options;
      const name = `killed-${(count += 1)}-${step.replaceAll('/', '-')}`;
      const env = { KILL_AT: step, STEPS_FILE: file };
      const { process } = await start({
        name,
        entry: stoppingController,
        env,
        settings,
        tuning,
        mayEnd: true,
      });
      await meanwhile?.(name);
      const timer = new AbortController();
      const late = pause(timeoutMs, 'lives on', { signal: timer.signal });
      const how = await Promise.race([process.ended, late]);
      timer.abort();
      late.catch(() => undefined);
      t.equal(how, 'SIGKILL', `killed at ${step}`);
      if (how !== 'SIGKILL') throw new Error(`${step}:\n${process.log().slice(-shownLogCharacters)}`);
    },
    live: (name: string, options: { settings?: Settings; tuning?: Tuning } = {}): Promise<Server> =>
      start({ name, entry: stoppingController, env: { STEPS_FILE: file }, ...options }),
    /** Checks that a controller was killed at every step that any of them reached. */
    expectKilledAtEach: (...operations: readonly (keyof typeof killedAt)[]): void => {
      const reached = new Set(readFileSync(file, 'utf8').split('\n'));
      const ours = [...reached].filter((step) => operations.some((name) => step.startsWith(`${name}/`)));
      const wanted = operations.flatMap((name) => [...killedAt[name]]);
      t.same(ours.sort(), wanted.sort(), 'a leader was killed at every step');
    },
  };
}
