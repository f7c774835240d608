/** What a program logged, and the value of a metric. */
import { createLog, type LogLevel } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';

export function captureLog(level: LogLevel = 'info') {
  const lines: string[] = [];
  return {
    log: createLog({ level, destination: { write: (line: string) => void lines.push(line) } }),
    lines,
  };
}

/** The value of a series such as `name{label="value"}`; `undefined` if it does not exist. */
export async function seriesOf(metrics: Metrics, name: string): Promise<number | undefined> {
  const line = (await metrics.render()).split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}
