/** Helm and kubectl as users run them, without blocking: pods are made in parallel. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { helmEnvironment } from '../chart/helm.ts';
import type { Cluster } from '../cluster/harness.ts';
import { helmProgram, type HelmName } from '../programs/helm.ts';
import { kubernetesPrograms } from '../programs/kubernetes.ts';

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly text: string;
}

/** No command of these tests takes this long, even on a loaded machine. */
const timeoutMs = 360_000;

/** Runs a program to its end, without a shell. */
export function runCommand(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { input = '', cwd }: { readonly input?: string; readonly cwd?: string } = {},
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs, env, cwd });
    let [out, text] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      text += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.on('error', reject).on('close', (code) => resolve({ code: code ?? -1, out, text }));
    // If a child ends without reading, its exit code shows the reason.
    child.stdin.on('error', () => undefined).end(input);
  });
}

export const namespace = 'archwright';
export type Helm = ReturnType<typeof createHelm>;

/** Helm with the default namespace `archwright`. A word may be several arguments, separated by spaces. */
export function createHelm(name: HelmName, cluster: Pick<Cluster, 'directory' | 'kubeconfig'>) {
  const home = join(cluster.directory, name);
  mkdirSync(home, { recursive: true });
  const env = { ...helmEnvironment(home, cluster.kubeconfig), HELM_NAMESPACE: namespace };
  const tryRun = (...words: readonly string[]): Promise<Outcome> => {
    const args = words.flatMap((each) => each.split(' '));
    return runCommand(helmProgram(name), args, env);
  };
  return {
    name,
    tryRun,
    /** @returns its output. @throws Error for another exit code than 0; the message has all its output */
    run: async (...words: readonly string[]): Promise<string> => {
      const { code, text } = await tryRun(...words);
      if (code !== 0) throw new Error(`${name} ${words.join(' ')}: exit code ${code}: ${text}`);
      return text;
    },
    values: (file: string, values: object): string => {
      const path = join(home, `${file}.json`);
      writeFileSync(path, JSON.stringify(values));
      return `--values=${path}`;
    },
  };
}

/**
 * Runs kubectl to its end.
 * @param input its standard input
 * @returns its standard output
 * @throws Error for another exit code than 0; the message has all its output
 */
export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

/** @param path folders of plugins, and of the programs that plugins need */
export function kubectlOf(
  { directory, kubeconfig }: Pick<Cluster, 'directory' | 'kubeconfig'>,
  path = '/usr/bin:/bin',
): Kubectl {
  const home = join(directory, 'kubectl');
  mkdirSync(home, { recursive: true });
  const { kubectl } = kubernetesPrograms(['kubectl']);
  return async (args, input) => {
    const env = { PATH: path, HOME: home, KUBECONFIG: kubeconfig };
    const { code, out, text } = await runCommand(kubectl, args, env, input === undefined ? {} : { input });
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
