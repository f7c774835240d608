/** What happens in the box, told to the outside a line of JSON at a time. */
import { globSync, readFileSync } from 'node:fs';

export type Line =
  | { readonly step: string; readonly ms: number; readonly error?: string }
  | { readonly fact: string }
  | { readonly log: string; readonly text: string };

export function tell(line: Line): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/**
 * One thing that must work.
 * @throws what `run` throws, after it was told
 */
export async function step<T>(name: string, run: () => Promise<T> | T): Promise<T> {
  const started = performance.now();
  const ms = (): number => Math.round(performance.now() - started);
  try {
    const result = await run();
    tell({ step: name, ms: ms() });
    return result;
  } catch (error) {
    tell({ step: name, ms: ms(), error: (error as Error).stack ?? String(error) });
    throw error;
  }
}

/** The ends of the logs of everything that ran, for a failure. */
export function tellLogs(more: Readonly<Record<string, string>>): void {
  const files = globSync(['/tmp/*.log', '/tmp/archwright-e2e-*/logs/*.log']);
  for (const path of files)
    tell({ log: path.split('/').at(-1) ?? '', text: readFileSync(path, 'utf8').slice(-400_000) });
  for (const [log, text] of Object.entries(more)) tell({ log, text });
}
