/**
 * `archwright controller` with other times and rates, and a hook between the steps of its operations: it kills
 * or pauses itself at one of them.
 *
 *   TUNING       JSON (`Tuning`)
 *   KILL_AT      pattern of a step (`test/support/steps.ts`)
 *   PAUSE_AT     the same, at which it pauses if PAUSE_FILE exists
 *   PAUSE_FILE   it removes this file first
 */
import { existsSync, rmSync } from 'node:fs';
import { main } from '../../../../cmd/program/main.ts';
import { onStopSignal } from '../../../../cmd/program/exit.ts';
import { runWith, subcommand, type Hooks } from '../../../../cmd/controller.ts';
import { steppingFeature } from '../../../support/steps.ts';
import { features } from '../../../../src/controller/features.ts';
import { certificatesWith } from '../../../../src/controller/features/certificates/certificates.ts';
import { timesOf } from '../../../../src/certificates/clock-agreement.ts';
import { webhookConfigurationWith } from '../../../../src/controller/features/webhook-configuration/webhook-configuration.ts';

/** What no setting changes. Milliseconds. */
export interface Tuning extends Pick<Hooks, 'leaseTimes' | 'writes'> {
  readonly certificateMs?: number;
  readonly caMs?: number;
  readonly pathRotationMs?: number;
}

const tuning = JSON.parse(process.env['TUNING'] ?? '{}') as Tuning;
const { certificateMs, caMs, pathRotationMs, leaseTimes, writes } = tuning;
const tuned = [
  ...(certificateMs === undefined ? [] : [certificatesWith(timesOf(certificateMs, caMs))]),
  ...(pathRotationMs === undefined ? [] : [webhookConfigurationWith(pathRotationMs)]),
];
const hooks: Hooks = {
  ...(leaseTimes && { leaseTimes }),
  ...(writes && { writes }),
  features: features
    .map((feature) => tuned.find(({ name }) => name === feature.name) ?? feature)
    .map((feature) => steppingFeature(feature, step)),
};

const killAt = process.env['KILL_AT'];
const pauseAt = process.env['PAUSE_AT'];
const pauseFile = process.env['PAUSE_FILE'];

function isAt(name: string, pattern: string | undefined): boolean {
  return pattern !== undefined && new RegExp(pattern, 'u').test(name);
}

function step(name: string): void {
  if (isAt(name, killAt)) process.kill(process.pid, 'SIGKILL');
  if (isAt(name, pauseAt) && pauseFile !== undefined && existsSync(pauseFile)) {
    rmSync(pauseFile);
    process.kill(process.pid, 'SIGSTOP');
  }
}

const run: typeof subcommand.run = (invocation) => runWith(invocation, hooks);

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
      summary: 'the controller with hooks',
      load: async () => ({
        subcommand: { ...subcommand, run },
      }),
    },
  },
});
process.exit(code);
