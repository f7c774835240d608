/** Helm with separate folders, and the chart as it renders it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { helmProgram, type HelmName } from '../programs/helm.ts';

export const chart = 'charts/archwright';

/** Version of Kubernetes to render for. Helm 3 built from source assumes 1.20 by default. */
export const kubeVersion = '1.36.3';

/** Rendering takes a tenth of a second. */
const timeoutMs = 6 * 60_000;

/** Runs Helm with its own folders, independent of this user's, and without a cluster. */
export function runHelm(name: HelmName, args: readonly string[]) {
  const home = mkdtempSync(join(tmpdir(), 'archwright-helm-'));
  try {
    const { status, stdout, stderr } = spawnSync(helmProgram(name), args, {
      encoding: 'utf8',
      timeout: timeoutMs,
      maxBuffer: 64 * 1024 * 1024,
      // It ends before a collection pays: a quarter less CPU time.
      env: { ...helmEnvironment(home), GOGC: 'off' },
    });
    return { code: status, out: stdout, err: stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

export function helmEnvironment(home: string, kubeconfig = join(home, 'none')): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin',
    HOME: home,
    HELM_CACHE_HOME: join(home, 'cache'),
    HELM_CONFIG_HOME: join(home, 'config'),
    HELM_DATA_HOME: join(home, 'data'),
    KUBECONFIG: kubeconfig,
  };
}

/** Renders the chart. @throws Error with Helm's output if it refuses */
export function render(
  name: HelmName,
  values: object = {},
  args: readonly string[] = [],
  release = 'archwright',
): string {
  const folder = mkdtempSync(join(tmpdir(), 'archwright-values-'));
  try {
    const file = join(folder, 'values.json');
    // JSON may have these characters, YAML may not.
    const escaped = (char: string): string => `\\u00${char.charCodeAt(0).toString(16)}`;
    writeFileSync(file, JSON.stringify(values).replaceAll(/[\u007f-\u009f]/g, escaped));
    const flags = ['--namespace', 'archwright', '--kube-version', kubeVersion, '--values', file];
    const { code, out, err } = runHelm(name, ['template', release, chart, ...flags, ...args]);
    if (code !== 0) throw new Error(err);
    return out;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
