/**
 * Verdicts of real programs, replayed without them. A suite of `test/e2e` writes its file again if `E2E_RECORD` is 1.
 * The files hold neither ports nor keys of the machine that wrote them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const isRecording = process.env['E2E_RECORD'] === '1';

type Program = 'containerd' | 'cri-o' | 'kubernetes';

const fileOf = (program: Program): string => join(import.meta.dirname, `${program}.jsonl`);

export function recordedBy(program: Program): readonly unknown[] {
  const lines = readFileSync(fileOf(program), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as unknown);
}

export function record(program: Program, lines: readonly object[]): void {
  writeFileSync(fileOf(program), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
