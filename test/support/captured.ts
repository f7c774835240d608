/** Logs that tests read or ignore, and values of metrics. */
import { createLog, type LogLevel } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';

export const silentLog = createLog({ level: 'silent' });

/** A log whose lines are kept as they were written. */
export function captureLog(level: LogLevel = 'info') {
  const lines: string[] = [];
  return {
    log: createLog({ level, destination: { write: (line: string) => void lines.push(line) } }),
    lines,
  };
}

/** A log whose lines are kept parsed. */
export function recordingLog(level: LogLevel = 'info') {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { log: createLog({ level, destination: { write } }), lines };
}

/** A log of every level, as one text. */
export function readableLog() {
  const { log, lines } = captureLog('trace');
  return { log, lines: () => lines.join('') };
}

/** The value of a series such as `name{label="value"}`; `undefined` if it does not exist. */
export async function seriesOf(metrics: Metrics, name: string): Promise<number | undefined> {
  const line = (await metrics.render()).split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}
