/** `archwright inspect` as a child process. */
import { execFile } from 'node:child_process';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';

export interface Answer {
  readonly code: number;
  readonly results: readonly ImageFacts[];
  readonly text: string;
}

/** Runs `archwright inspect`. A cold start takes well under a second. */
export function inspect(args: readonly string[]): Promise<Answer> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['cmd/archwright.ts', 'inspect', '--output', 'json', ...args],
      { timeout: 60_000 },
      (_error, stdout, stderr) => {
        const results = stdout === '' ? [] : (JSON.parse(stdout) as { results: ImageFacts[] }).results;
        resolve({ code: child.exitCode ?? -1, results, text: stdout + stderr });
      },
    );
  });
}

/** Platforms as `os/architecture[/variant]`, sorted. */
export const written = (facts: ImageFacts | undefined): string[] =>
  (facts?.platforms ?? [])
    .map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'))
    .sort();
