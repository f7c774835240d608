/** The program's entry: connects `main` to this process. */
import { describeFailure, main, wantsStack } from './program/main.ts';
import { exitCodes, onStopSignal } from './program/exit.ts';
import { scrub } from '../src/telemetry/scrub.ts';

const args = process.argv.slice(2);

process.on('uncaughtException', (error) => {
  process.stderr.write(scrub(describeFailure(error, wantsStack(args, process.env))));
  process.exit(exitCodes.failure);
});

// The reader closed the pipe: `archwright config print | head -3`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCodes.success);
  throw error;
});

const code = await main(args, {
  io: {
    env: process.env,
    stdin: process.stdin,
    isTerminal: process.stdout.isTTY,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isErrTerminal: process.stderr.isTTY,
  },
  stop: onStopSignal(),
});

// Flush pipes before the process exits.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
