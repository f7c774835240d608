/**
 * The log: one line of JSON for each event on standard error, by pino. `warn` and `error` have a constant
 * message and variable fields, so that lines can be counted. `scrub` processes every line.
 */
import { pino, type DestinationStream, type Logger } from 'pino';
import { scrub } from './scrub.ts';

export type Log = Logger;

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  level?: LogLevel;
  /** Default: standard error, because standard output is for the result of a command. */
  destination?: DestinationStream;
}

/** Children (`log.child({ part: 'webhook' })`) share the destination and scrubbing. */
export function createLog(options: LogOptions = {}): Log {
  return pino(
    {
      level: options.level ?? 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: scrub },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
