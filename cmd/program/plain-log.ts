/** The log of one-shot subcommands: one plain line per event on standard error instead of JSON. */
import { createLog, type Log, type LogLevel } from '../../src/telemetry/log.ts';
import type { Streams } from './subcommand.ts';

/** Fields that are shown elsewhere in the line, or not at all. */
const unsaid: ReadonlySet<string> = new Set(['level', 'time', 'msg']);

/** Creates the log. Secrets are scrubbed as in every log. */
export function createPlainLog(io: Pick<Streams, 'err'>, level: LogLevel): Log {
  return createLog({ level, destination: { write: (line) => io.err(plainLine(line)) } });
}

function plainLine(line: string): string {
  const event = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const details = Object.entries(event)
    .filter(([name]) => !unsaid.has(name))
    .map(([name, value]) => `${name === 'err' ? 'error' : name} ${textOf(value)}`);
  const message = [textOf(event['msg']), ...(details.length > 0 ? [details.join(', ')] : [])].join(': ');
  return `archwright: ${textOf(event['level'])}: ${message}\n`;
}

/** pino writes errors as objects with message and stack. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null && 'message' in value) return textOf(value.message);
  return JSON.stringify(value);
}
