/** kubectl as its user runs it. */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/**
 * Runs kubectl to its end.
 * @param input what it reads from standard input
 * @returns what it wrote to standard output
 * @throws where it ends with another code than 0; the message has all that it said
 */
export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

/** As long as the longest wait of a test. */
const timeoutMs = 300_000;

/**
 * @param program its path
 * @param home a folder for what it remembers of API servers
 * @param path where it finds plugins, and they their programs
 */
export function createKubectl(
  program: string,
  kubeconfig: string,
  home: string,
  path = '/usr/bin:/bin',
): Kubectl {
  mkdirSync(home, { recursive: true });
  return (args, input = '') =>
    new Promise((resolve, reject) => {
      const child = spawn(program, args, {
        stdio: ['pipe', 'pipe', 'pipe'],
        timeout: timeoutMs,
        env: { PATH: path, HOME: home, KUBECONFIG: kubeconfig },
      });
      const texts = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const)
        child[name].on('data', (chunk: Buffer) => (texts[name] += chunk.toString()));
      child.on('error', reject);
      child.on('close', (code) => {
        if (code === 0) resolve(texts.stdout);
        else
          reject(new Error(`kubectl ${args.join(' ')}: exit code ${code}: ${texts.stdout}${texts.stderr}`));
      });
      // A child that ended without reading says why by its exit code.
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
    });
}
