/**
 * `archwright controller` with a hook between the steps of its operations: it records the name of each step,
 * and kills or pauses itself at one of them.
 *
 *   KILL_AT      name of a step
 *   PAUSE_AT     name of a step, at which it pauses if PAUSE_FILE exists
 *   PAUSE_FILE   it removes this file first
 *   STEPS_FILE   file for the names of steps
 */
import { appendFileSync, existsSync, rmSync } from 'node:fs';
import { main } from '../../../../cmd/program/main.ts';
import { onStopSignal } from '../../../../cmd/program/signals.ts';
import { runWith, subcommand } from '../../../../cmd/controller.ts';

const killAt = process.env['KILL_AT'];
const pauseAt = process.env['PAUSE_AT'];
const pauseFile = process.env['PAUSE_FILE'];
const stepsFile = process.env['STEPS_FILE'];

function step(name: string): void {
  if (stepsFile !== undefined) appendFileSync(stepsFile, `${name}\n`);
  if (name === killAt) process.kill(process.pid, 'SIGKILL');
  if (name === pauseAt && pauseFile !== undefined && existsSync(pauseFile)) {
    rmSync(pauseFile);
    process.kill(process.pid, 'SIGSTOP');
  }
}

const code = await main(process.argv.slice(2), {
  io: {
    env: process.env,
    stdin: process.stdin,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
  },
  stop: onStopSignal(),
  subcommands: {
    controller: {
      summary: 'the controller that stops',
      load: async () => ({
        subcommand: { ...subcommand, run: (invocation) => runWith(invocation, { step }) },
      }),
    },
  },
});
process.exit(code);
