/** Programs that users run, without blocking: pods are made while they work. */
import { spawn } from 'node:child_process';

export interface Outcome {
  readonly code: number;
  readonly out: string;
  /** Standard output and error together. */
  readonly text: string;
}

/** No command of these tests takes so long; a loaded machine gets more. */
const timeoutMs = 360_000;

/** Runs a program to its end. @param input its standard input */
export function runCommand(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs, env });
    let [out, text] = ['', ''];
    child.stdout.on(
      'data',
      (chunk: Buffer) => ([out, text] = [out + chunk.toString(), text + chunk.toString()]),
    );
    child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.on('error', reject).on('close', (code) => resolve({ code: code ?? -1, out, text }));
    // A child that ends without reading says why by its exit code.
    child.stdin.on('error', () => undefined).end(input);
  });
}
