/** Helm 3 and 4, and a registry server that is built: found, else built into the cache. */
import { execFileSync } from 'node:child_process';
import { installed } from './cache.ts';
import { built, type GoModule } from './go.ts';

export const helms = ['helm3', 'helm4'] as const;
export type HelmName = (typeof helms)[number];

const helmModules: Readonly<Record<HelmName, GoModule>> = {
  helm3: { path: 'helm.sh/helm/v3', version: 'v3.22.0' },
  helm4: { path: 'helm.sh/helm/v4', version: 'v4.3.1' },
};
const foundHelms = new Map<HelmName, string>();

export function helmProgram(name: HelmName): string {
  const known = foundHelms.get(name);
  if (known !== undefined) return known;
  const module = helmModules[name];
  const path =
    installed(name, 'helm').find((candidate) => isOfMajor(candidate, name)) ??
    built(name, module, `${module.path}/cmd/helm`);
  foundHelms.set(name, path);
  return path;
}

function isOfMajor(program: string, name: HelmName): boolean {
  const version = execFileSync(program, ['version', '--short'], { encoding: 'utf8' });
  return version.startsWith(`v${name.slice('helm'.length)}.`);
}

/** The registry `distribution` version 3. Debian has 2.8. */
export function distributionProgram(): string {
  const path = 'github.com/distribution/distribution/v3';
  return built('distribution', { path, version: 'v3.1.2' }, `${path}/cmd/registry`);
}
