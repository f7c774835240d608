/** cert-manager's controller, which its Go module has no program for: `main.go` of ours, built with its packages. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from './cache.ts';
import { buildSource } from './go.ts';
import { kubernetesModule, kubernetes } from './kubernetes.ts';

export const certManager = { path: 'github.com/cert-manager/cert-manager', version: 'v1.21.2' } as const;

export function certManagerProgram(): string {
  const source = readFileSync(new URL('../cluster/cert-manager/main.go', import.meta.url), 'utf8');
  // Comments do not change the program.
  const digest = createHash('sha256')
    .update(source.replaceAll(/^\s*\/\/.*$/gm, ''))
    .digest('hex')
    .slice(0, 8);
  const path = join(cache, `cert-manager-${certManager.version}-${digest}`);
  if (existsSync(path)) return path;
  mkdirSync(cache, { recursive: true });
  buildSource({ ...certManager, dependenciesOf: kubernetesModule(kubernetes) }, source, path);
  return path;
}
