/**
 * The log: one line of JSON for each event on standard error, by pino. `warn` and `error` have a constant
 * message and variable fields, so that lines can be counted. No value contains a known secret.
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

/** How pino sets a level, without the property `level`. */
type Levels = Readonly<Record<typeof pino.symbols.setLevelSym, (level: LogLevel) => void>>;

/** Children (`log.child({ part: 'webhook' })`) share the destination, scrubbing, and the level as it is now. */
export function createLog(options: LogOptions = {}): Log {
  const log: Log = pino(
    {
      level: options.level ?? 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        streamWrite: scrubValues,
        logMethod(args, method, level) {
          if (level >= log.levelVal) method.apply(this, args);
        },
      },
      // A child of pino's keeps the level that its parent had when it was made.
      onChild: (child) => {
        (child as Log & Levels)[pino.symbols.setLevelSym]('trace');
        const shared = { get: () => log.level, set: (level: LogLevel) => void (log.level = level) };
        Object.defineProperty(child, 'level', shared);
      },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
  return log;
}

/** The logger's own fields, which it writes first. */
const head = /^\{"level":"[a-z]+","time":"[-:.TZ0-9]+"/;
const texts = /"[^"\\]*(?:\\.[^"\\]*)*"(:?)/g;

/**
 * Scrubs the values of a line, and nothing else. Pod authors choose their passwords: one like `"level":"error"`
 * or `"}`, or a date, would otherwise change or hide the lines about them.
 */
function scrubValues(line: string): string {
  const own = head.exec(line)?.[0] ?? '';
  const fields = line.slice(own.length).replaceAll(texts, (text, colon: string) => {
    if (colon !== '') return text;
    const value = JSON.parse(text) as string;
    const clean = scrub(value);
    return clean === value ? text : JSON.stringify(clean);
  });
  return own + fields;
}
