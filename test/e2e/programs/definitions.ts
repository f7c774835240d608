/** Parts of Go modules: CustomResourceDefinitions that the chart needs, and cert-manager's controller. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache, say } from './cache.ts';
import { builtSource, downloadModule } from './go.ts';
import { kubernetesModule, kubernetes } from './kubernetes.ts';

const certManager = { path: 'github.com/cert-manager/cert-manager', version: 'v1.21.2' } as const;

interface Source {
  /** Of its file in the cache. */
  readonly name: string;
  readonly path: string;
  readonly version: string;
  readonly files: readonly string[];
}

const monitoring = 'example/prometheus-operator-crd/monitoring.coreos.com';

const sources: readonly Source[] = [
  {
    name: 'cert-manager',
    ...certManager,
    files: ['deploy/crds/cert-manager.io_certificates.yaml', 'deploy/crds/cert-manager.io_issuers.yaml'],
  },
  {
    name: 'prometheus-operator',
    path: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    files: ['servicemonitors', 'podmonitors', 'prometheusrules'].map((name) => `${monitoring}_${name}.yaml`),
  },
  {
    name: 'vertical-pod-autoscaler',
    path: 'k8s.io/autoscaler/vertical-pod-autoscaler',
    version: 'v1.8.1',
    files: ['deploy/vpa-v1-crd-gen.yaml'],
  },
];

const runningCertManager: Source = {
  name: 'cert-manager-running',
  ...certManager,
  files: ['certificates', 'certificaterequests', 'issuers', 'clusterissuers'].map(
    (name) => `deploy/crds/cert-manager.io_${name}.yaml`,
  ),
};

const openReports: Source = {
  name: 'openreports',
  path: 'github.com/openreports/reports-api',
  version: 'v0.2.1',
  files: ['config/crd/openreports.io_reports.yaml'],
};

export function foreignDefinitions(): readonly string[] {
  return sources.flatMap((source) => textsOf(source));
}

export function certManagerDefinitions(): readonly string[] {
  return textsOf(runningCertManager);
}

export function openReportsDefinitions(): readonly string[] {
  return textsOf(openReports);
}

function textsOf(source: Source): readonly string[] {
  return readFileSync(kept(source), 'utf8')
    .split(/^---$/m)
    .filter((text) => text.trim() !== '');
}

/** A file in the cache with all wanted files of a module. */
function kept({ name, path, version, files }: Source): string {
  const folder = join(cache, 'definitions');
  const file = join(folder, `${name}-${version}.yaml`);
  if (existsSync(file)) return file;
  say(`taking definitions from ${path}@${version}`);
  mkdirSync(folder, { recursive: true });
  const { Dir } = downloadModule({ path, version }, folder);
  const half = `${file}.${process.pid}`;
  writeFileSync(half, files.map((each) => readFileSync(join(Dir, each), 'utf8')).join('\n---\n'));
  renameSync(half, file);
  return file;
}

export function certManagerProgram(): string {
  const module = { ...certManager, dependenciesOf: kubernetesModule(kubernetes) };
  return builtSource('cert-manager', module, new URL('../cluster/cert-manager/main.go', import.meta.url));
}
