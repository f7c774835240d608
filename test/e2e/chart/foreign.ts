/**
 * The definitions of kinds that the chart renders for programs that others install: cert-manager, the Prometheus operator and the
 * vertical pod autoscaler. They come with their Go modules, and are kept in the cache by version.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { download } from '../build.ts';
import { cache, onPath, say } from '../parts.ts';

interface Source {
  readonly path: string;
  readonly version: string;
  /** Files inside the module. */
  readonly files: readonly string[];
}

const monitoring = 'example/prometheus-operator-crd/monitoring.coreos.com';

const sources: readonly Source[] = [
  {
    path: 'github.com/cert-manager/cert-manager',
    version: 'v1.21.2',
    files: ['deploy/crds/cert-manager.io_certificates.yaml', 'deploy/crds/cert-manager.io_issuers.yaml'],
  },
  {
    path: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    files: ['servicemonitors', 'podmonitors', 'prometheusrules'].map((name) => `${monitoring}_${name}.yaml`),
  },
  {
    path: 'k8s.io/autoscaler/vertical-pod-autoscaler',
    version: 'v1.8.1',
    files: ['deploy/vpa-v1-crd-gen.yaml'],
  },
];

/**
 * All of them, after making sure that they are there.
 * @returns one YAML text for each definition
 * @throws where a module cannot be had
 */
export function foreignDefinitions(): readonly string[] {
  return sources.flatMap((source) =>
    readFileSync(kept(source), 'utf8')
      .split(/^---$/m)
      .filter((text) => text.trim() !== ''),
  );
}

/** A file in the cache with all that is wanted of a module. */
function kept({ path, version, files }: Source): string {
  const folder = join(cache, 'definitions');
  const file = join(folder, `${path.slice(path.lastIndexOf('/') + 1)}-${version}.yaml`);
  if (existsSync(file)) return file;
  if (onPath('go') === undefined)
    throw new Error(`the definitions of ${path} are in its module, which needs go`);
  say(`taking definitions from ${path}@${version}`);
  mkdirSync(folder, { recursive: true });
  const { Dir } = download(path, version, folder);
  const half = `${file}.${process.pid}`;
  writeFileSync(half, files.map((name) => readFileSync(join(Dir, name), 'utf8')).join('\n---\n'));
  renameSync(half, file);
  return file;
}
