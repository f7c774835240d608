/**
 * `npm run image`: builds the Dockerfile for linux/amd64 and linux/arm64 with buildah. The bundle is made on
 * this machine, so nothing runs in a container.
 *
 *   npm run image                                            into dist/image/oci, an OCI layout
 *   npm run image -- --platform amd64 --push docker://registry.example.com/archwright:0.1.0
 *
 *   --platform LIST   amd64,arm64
 *   --base IMAGE      an image with Node in place of the Dockerfile's
 *   --output DIR      folder of the OCI layout
 *   --push TO         a destination of buildah, such as docker://…; --insecure for a registry without TLS
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

/** A build takes seconds; copying 100 MB to a slow registry takes minutes. */
const timeoutMs = 15 * 60_000;

const { values: flags } = parseArgs({
  options: {
    platform: { type: 'string', default: 'amd64,arm64' },
    base: { type: 'string' },
    output: { type: 'string', default: 'dist/image/oci' },
    push: { type: 'string' },
    insecure: { type: 'boolean', default: false },
  },
});

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const commit = process.env['ARCHWRIGHT_COMMIT'] ?? git('rev-parse', 'HEAD') ?? 'unknown';
// Times of files and image are those of the commit, so the same source and base give the same image.
const time = process.env['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct') ?? '0';
const work = mkdtempSync(join(tmpdir(), 'archwright-image-'));
try {
  const program = join(work, 'program');
  execFileSync(process.execPath, ['scripts/bundle.ts', '--root', program], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ARCHWRIGHT_COMMIT: commit },
  });
  const args = {
    VERSION: version,
    COMMIT: commit,
    ...(flags.base !== undefined && { NODE_IMAGE: flags.base }),
  };
  // In sequence: parallel builds would have a random order in the index.
  for (const architecture of flags.platform.split(',')) {
    buildah([
      'build',
      '--manifest=archwright',
      `--platform=linux/${architecture}`,
      '--format=oci',
      `--timestamp=${time}`,
      `--build-context=build=${work}`,
      ...Object.entries(args).map(([key, value]) => `--build-arg=${key}=${value}`),
      '.',
    ]);
  }
  rmSync(flags.output, { recursive: true, force: true });
  mkdirSync(dirname(flags.output), { recursive: true });
  const layout = `oci:${flags.output}:${version}`;
  const digest = push(layout);
  if (flags.push !== undefined) push(flags.push);
  process.stdout.write(`${flags.push ?? layout} ${digest}\n`);
} finally {
  rmSync(work, { recursive: true, force: true });
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
    'archwright',
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

function git(...args: readonly string[]): string | undefined {
  try {
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
