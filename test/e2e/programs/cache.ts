/**
 * The cache of programs that end-to-end tests build, and the commands that install and build them.
 *
 *   ARCHWRIGHT_E2E_CACHE   folder of built programs. Default: `~/.cache/archwright/e2e`.
 *   KUBE_BIN_DIR           folder that is searched first. It holds programs under their plain names.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

export const cache = process.env['ARCHWRIGHT_E2E_CACHE'] ?? join(homedir(), '.cache', 'archwright', 'e2e');

/** A cold download of Go modules or Debian packages may take minutes. */
const installTimeoutMs = 10 * 60_000;

/** Set in the box (`box/box.ts`): it has no network, so nothing can be installed or built. */
export const boxVariable = 'ARCHWRIGHT_E2E_BOX';

/** @throws Error inside the box, which has no network: get the program before the box starts */
export function refuseInBox(what: string): void {
  if (process.env[boxVariable] !== undefined)
    throw new Error(`${what} is missing, and the box has no network to get it; looked in ${cache}`);
}

/** Runs a program to its end. Its standard error is shown. */
export function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): void {
  execFileSync(program, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: installTimeoutMs,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', ...env },
  });
}

export function say(text: string): void {
  process.stderr.write(`e2e: ${text}\n`);
}

export function onPath(program: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, program))
    .find((path) => existsSync(path));
}

/** Existing files with these names: in `KUBE_BIN_DIR`, `~/.cache/kube-bin/*` (newest first), the PATH. */
export function installed(...names: readonly string[]): readonly string[] {
  const usual = join(homedir(), '.cache', 'kube-bin');
  const versions = existsSync(usual) ? readdirSync(usual).sort().reverse() : [];
  const folders = [process.env['KUBE_BIN_DIR'] ?? '', ...versions.map((version) => join(usual, version))];
  return names
    .flatMap((name) => [
      ...folders.filter((folder) => folder !== '').map((folder) => join(folder, name)),
      onPath(name) ?? '',
    ])
    .filter((path) => existsSync(path));
}
