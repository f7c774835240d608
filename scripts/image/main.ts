/**
 * `npm run image`: builds the image for linux/amd64 and linux/arm64 with buildah; no base image, no emulation.
 *
 *   npm run image                                            into dist/image/oci, an OCI layout
 *   npm run image -- --platform amd64 --push docker://registry.example.com/archwright:0.1.0
 *
 *   --platform LIST   amd64,arm64
 *   --output DIR      folder of the OCI layout
 *   --push TO         a destination of buildah, such as docker://…; --insecure for a registry without TLS
 *   --skip-bundle     uses the existing dist/archwright.mjs
 *
 * Next to the layout it writes `sbom.cdx.json` and `provenance.json` (docs/internals/release.md).
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { canUnpackDebian, type DebianPackage } from './debian.ts';
import { architectures, nodeVersion, type Architecture } from './node-runtime.ts';
import { provenance } from './provenance.ts';
import { makeBase, makeProgram } from './rootfs.ts';
import { sbom } from './sbom.ts';
import { sourceOf } from './source.ts';

const title = 'archwright';
const cache = process.env['ARCHWRIGHT_IMAGE_CACHE'] ?? join(homedir(), '.cache', 'archwright', 'image');
/** A build takes seconds; copying 100 MB to a slow registry takes minutes. */
const timeoutMs = 15 * 60_000;

const { values: flags } = parseArgs({
  options: {
    platform: { type: 'string', default: architectures.join(',') },
    output: { type: 'string', default: 'dist/image/oci' },
    push: { type: 'string' },
    insecure: { type: 'boolean', default: false },
    'skip-bundle': { type: 'boolean', default: false },
  },
});

const platforms = flags.platform.split(',').map((name): Architecture => {
  const found = architectures.find((known) => known === name.replace(/^linux\//, ''));
  if (found === undefined) throw new Error(`--platform takes ${architectures.join(' and ')}, not ${name}`);
  return found;
});
if (!canUnpackDebian())
  throw new Error('apt-get and dpkg are needed for the C library; on other systems, build the Dockerfile');

const source = sourceOf();
const work = mkdtempSync(join(tmpdir(), 'archwright-image-'));
try {
  const packages = build();
  write(packages);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function build(): readonly DebianPackage[] {
  // In a separate folder: several images may be built concurrently.
  const bundle = flags['skip-bundle'] ? 'dist' : join(work, 'bundle');
  if (!flags['skip-bundle'])
    execFileSync(process.execPath, ['scripts/bundle.ts', bundle], { stdio: ['ignore', 'ignore', 'inherit'] });
  const context = join(work, 'context');
  const packages = platforms.flatMap((architecture) =>
    makeBase(architecture, cache, join(context, `base-${architecture}`)),
  );
  makeProgram(bundle, join(context, 'program'));
  cpSync('scripts/image/Containerfile', join(context, 'Containerfile'));
  const labels = {
    title,
    description: 'Places every pod on a node that can run all of its images',
    licenses: 'Apache-2.0',
    version: source.version,
    revision: source.commit,
    created: new Date(source.time * 1000).toISOString(),
  };
  // In sequence: parallel builds would have a random order in the index.
  for (const architecture of platforms) {
    buildah([
      'build',
      '--manifest',
      title,
      '--platform',
      `linux/${architecture}`,
      '--format',
      'oci',
      // File and image times are those of the commit, so the same source gives the same image.
      '--timestamp',
      String(source.time),
      '--layers',
      ...Object.entries(labels).flatMap(([key, value]) => [
        '--label',
        `org.opencontainers.image.${key}=${value}`,
      ]),
      context,
    ]);
  }
  return packages;
}

function write(packages: readonly DebianPackage[]): void {
  const folder = join(flags.output, '..');
  rmSync(flags.output, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const digest = push(`oci:${flags.output}:${source.version}`);
  if (flags.push !== undefined) push(flags.push);
  writeFileSync(join(folder, 'sbom.cdx.json'), sbom({ source, nodeVersion, packages, digest }));
  writeFileSync(
    join(folder, 'provenance.json'),
    provenance({ source, nodeVersion, packages, digest, platforms }),
  );
  process.stdout.write(`${flags.push ?? `oci:${flags.output}:${source.version}`} ${digest}\n`);
}

/** @returns the digest of the index */
function push(where: string): string {
  const digestFile = join(work, 'digest');
  const insecure = flags.insecure ? ['--tls-verify=false'] : [];
  buildah([
    'manifest',
    'push',
    '--all',
    '--format',
    'oci',
    '--digestfile',
    digestFile,
    ...insecure,
    title,
    where,
  ]);
  return readFileSync(digestFile, 'utf8').trim();
}

/** With separate storage, which is removed with the work folder, and only the user's rights. */
function buildah(args: readonly string[]): void {
  const [command = '', ...rest] = args;
  const storage = [
    '--root',
    join(work, 'storage'),
    '--runroot',
    join(work, 'run'),
    '--storage-driver',
    'vfs',
  ];
  execFileSync('buildah', [...storage, command, ...rest], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: timeoutMs,
    env: { ...process.env, BUILDAH_ISOLATION: 'chroot' },
  });
}
