/** Helm 3 and 4: found in `KUBE_BIN_DIR`, in the usual cache or on the PATH, else built. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { built, onPath, type GoPart } from '../parts.ts';

export const chart = 'charts/archwright';

/** What a chart is rendered for; Helm 3 built from source believes in Kubernetes 1.20 else. */
export const kubeVersion = '1.36.3';

const majors: Readonly<
  Record<
    'helm3' | 'helm4',
    { readonly major: number; readonly names: readonly string[]; readonly part: GoPart }
  >
> = {
  helm3: {
    major: 3,
    names: ['helm3', 'helm'],
    part: { module: 'helm.sh/helm/v3/cmd/helm', version: 'v3.22.0', program: 'helm' },
  },
  helm4: {
    major: 4,
    names: ['helm4', 'helm'],
    part: { module: 'helm.sh/helm/v4/cmd/helm', version: 'v4.3.1', program: 'helm' },
  },
};

export type HelmName = keyof typeof majors;
export const helms = ['helm3', 'helm4'] as const;

const found = new Map<HelmName, string>();

/** The path of the program. */
export function helm(name: HelmName): string {
  const known = found.get(name);
  if (known !== undefined) return known;
  const { major, names, part } = majors[name];
  const path =
    names
      .flatMap((file) => [...folders().map((folder) => join(folder, file)), onPath(file) ?? ''])
      .find((candidate) => existsSync(candidate) && majorOf(candidate) === major) ?? built(name, part);
  found.set(name, path);
  return path;
}

function folders(): readonly string[] {
  const usual = join(homedir(), '.cache', 'kube-bin');
  const versions = existsSync(usual) ? readdirSync(usual).sort().reverse() : [];
  return [process.env['KUBE_BIN_DIR'] ?? '', ...versions.map((version) => join(usual, version))].filter(
    (folder) => folder !== '',
  );
}

function majorOf(program: string): number {
  return Number(/^v(\d+)/.exec(execFileSync(program, ['version', '--short'], { encoding: 'utf8' }))?.[1]);
}

/** Rendering takes a tenth of a second; with `--wait` minutes may pass on a slow machine. */
const timeoutMs = 6 * 60_000;

export interface HelmAnswer {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs Helm with folders of its own, so that nothing of this user's counts or changes. */
export function runHelm(
  name: HelmName,
  args: readonly string[],
  options: { readonly kubeconfig?: string } = {},
): HelmAnswer {
  const home = mkdtempSync(join(tmpdir(), 'archwright-helm-'));
  try {
    const { status, stdout, stderr } = spawnSync(helm(name), args, {
      encoding: 'utf8',
      timeout: timeoutMs,
      maxBuffer: 64 * 1024 * 1024,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        HELM_CACHE_HOME: join(home, 'cache'),
        HELM_CONFIG_HOME: join(home, 'config'),
        HELM_DATA_HOME: join(home, 'data'),
        KUBECONFIG: options.kubeconfig ?? join(home, 'none'),
      },
    });
    return { code: status, out: stdout, err: stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/**
 * Renders the chart.
 * @throws with what Helm said, where it refuses
 */
export function render(
  name: HelmName,
  values: object = {},
  args: readonly string[] = [],
  release = 'archwright',
): string {
  const folder = mkdtempSync(join(tmpdir(), 'archwright-values-'));
  try {
    const file = join(folder, 'values.json');
    writeFileSync(file, JSON.stringify(values));
    const all = [
      'template',
      release,
      chart,
      '--namespace',
      'archwright',
      '--kube-version',
      kubeVersion,
      '--values',
      file,
      ...args,
    ];
    const { code, out, err } = runHelm(name, all);
    if (code !== 0) throw new Error(err);
    return out;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
