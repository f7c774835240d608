/**
 * One line of JSON per event on standard error, by pino. Levels are pino's; `warn` and `error` have a constant
 * message and carry what varies as fields, so that lines can be counted. Every line passes `scrub`.
 */
import { pino, type DestinationStream, type Logger } from 'pino';
import { scrub } from './scrub.ts';

export type Log = Logger;

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  level?: LogLevel;
  /** Where lines go; standard error by default, because standard output belongs to the command's answer. */
  destination?: DestinationStream;
}

/** Makes the program's log. Children (`log.child({ part: 'webhook' })`) share its destination and scrubbing. */
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
