/** The report of the box: a line of JSON for each step. */
import { globSync, readFileSync } from 'node:fs';

export type Line =
  | { readonly step: string; readonly ms: number; readonly error?: string }
  | { readonly fact: string }
  | { readonly log: string; readonly text: string };

export function reportLine(line: Line): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** One step of the test. @throws the error of `run`, after it was reported */
export async function step<T>(name: string, run: () => Promise<T> | T): Promise<T> {
  const started = performance.now();
  const ms = (): number => Math.round(performance.now() - started);
  try {
    const result = await run();
    reportLine({ step: name, ms: ms() });
    return result;
  } catch (error) {
    reportLine({ step: name, ms: ms(), error: (error as Error).stack ?? String(error) });
    throw error;
  }
}

/** The ends of the logs of everything that ran, for a failure. */
export function reportLogs(more: Readonly<Record<string, string>>): void {
  const files = globSync(['/tmp/*.log', '/tmp/archwright-e2e-*/logs/*.log']);
  for (const path of files)
    reportLine({ log: path.split('/').at(-1) ?? '', text: readFileSync(path, 'utf8').slice(-400_000) });
  for (const [log, text] of Object.entries(more)) reportLine({ log, text });
}
