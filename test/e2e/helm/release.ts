/** Helm as its user runs it, without blocking: pods are made while it works. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { HelmName } from '../programs/helm.ts';
import type { Programs } from './programs.ts';

export interface Helm {
  readonly name: HelmName;
  /**
   * @returns what it said
   * @throws where it ends with another code; the message has all that it said
   */
  run(...args: readonly string[]): Promise<string>;
  /** The same where it may fail: its exit code. */
  tryRun(...args: readonly string[]): Promise<{ readonly code: number; readonly text: string }>;
  /** Writes values and returns the flag for them. */
  values(name: string, values: object): string;
}

/** Nothing of the chart takes so long; a loaded machine gets more. */
const timeoutMs = 300_000;
export const namespace = 'archwright';

export function createHelm(name: HelmName, programs: Programs, kubeconfig: string): Helm {
  const home = `/tmp/${name}`;
  mkdirSync(home, { recursive: true });
  const tryRun: Helm['tryRun'] = (...args) =>
    new Promise((resolve, reject) => {
      const child = spawn(programs[name], args, {
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: timeoutMs,
        env: {
          PATH: '/usr/bin:/bin',
          HOME: home,
          HELM_NAMESPACE: namespace,
          HELM_CACHE_HOME: `${home}/cache`,
          HELM_CONFIG_HOME: `${home}/config`,
          HELM_DATA_HOME: `${home}/data`,
          KUBECONFIG: kubeconfig,
        },
      });
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
      child.on('error', reject);
      child.on('close', (code) => resolve({ code: code ?? -1, text }));
    });
  return {
    name,
    tryRun,
    run: async (...args) => {
      const { code, text } = await tryRun(...args);
      if (code !== 0) throw new Error(`helm ${args.join(' ')}: exit code ${code}: ${text}`);
      return text;
    },
    values: (file, values) => {
      const path = `${home}/${file}.json`;
      writeFileSync(path, JSON.stringify(values));
      return `--values=${path}`;
    },
  };
}
