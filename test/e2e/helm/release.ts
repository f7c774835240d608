/** Helm as its user runs it in a cluster. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../cluster/harness.ts';
import { helmProgram, type HelmName } from '../programs/helm.ts';
import { runCommand, type Outcome } from './command.ts';

export interface Helm {
  readonly name: HelmName;
  /**
   * @param words each may be several arguments with spaces between them
   * @returns its output
   * @throws Error for another exit code than 0; the message has all its output
   */
  run(...words: readonly string[]): Promise<string>;
  tryRun(...words: readonly string[]): Promise<Outcome>;
  /** Writes a values file and returns the flag for it. */
  values(name: string, values: object): string;
}

export const namespace = 'archwright';

/** Default namespace: `archwright`. */
export function createHelm(name: HelmName, cluster: Pick<Cluster, 'directory' | 'kubeconfig'>): Helm {
  const home = join(cluster.directory, name);
  mkdirSync(home, { recursive: true });
  const env = {
    PATH: '/usr/bin:/bin',
    HOME: home,
    HELM_NAMESPACE: namespace,
    HELM_CACHE_HOME: `${home}/cache`,
    HELM_CONFIG_HOME: `${home}/config`,
    HELM_DATA_HOME: `${home}/data`,
    KUBECONFIG: cluster.kubeconfig,
  };
  const tryRun: Helm['tryRun'] = (...words) =>
    runCommand(
      helmProgram(name),
      words.flatMap((each) => each.split(' ')),
      env,
    );
  return {
    name,
    tryRun,
    run: async (...words) => {
      const { code, text } = await tryRun(...words);
      if (code !== 0) throw new Error(`${name} ${words.join(' ')}: exit code ${code}: ${text}`);
      return text;
    },
    values: (file, values) => {
      const path = join(home, `${file}.json`);
      writeFileSync(path, JSON.stringify(values));
      return `--values=${path}`;
    },
  };
}
