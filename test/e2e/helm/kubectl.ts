/** kubectl as its user runs it. */
import { mkdirSync } from 'node:fs';
import { runCommand } from './command.ts';

/**
 * Runs kubectl to its end.
 * @param input its standard input
 * @returns its standard output
 * @throws Error for another exit code than 0; the message has all its output
 */
export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

/**
 * @param program its path
 * @param home folder for its caches
 * @param path where it finds plugins, and plugins find their programs
 */
export function createKubectl(
  program: string,
  kubeconfig: string,
  home: string,
  path = '/usr/bin:/bin',
): Kubectl {
  mkdirSync(home, { recursive: true });
  return async (args, input) => {
    const { code, out, text } = await runCommand(
      program,
      args,
      { PATH: path, HOME: home, KUBECONFIG: kubeconfig },
      input,
    );
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit code ${code}: ${text}`);
    return out;
  };
}

/** The lines of `kubectl apply` for objects that changed. */
export function changedIn(output: string): readonly string[] {
  const lines = output.trim().split('\n');
  // kubectl always replaces the selector of a PodDisruptionBudget, by itself.
  return lines.filter((line) => !/ unchanged$|^poddisruptionbudget\./.test(line));
}
