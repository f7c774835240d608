/** Images that can really be pulled: one small layer. No program is in them: what is compared ends with the pull. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { document, manifest, mediaTypes, type Content } from '../../support/registry/content.ts';

/** A folder as a tar archive, the same bytes each time. */
export function tarOf(directory: string): Buffer {
  const flags = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  return execFileSync('tar', [...flags, '-C', directory, '-cf', '-', '.'], { maxBuffer: 64 * 1024 * 1024 });
}

/** An image for this machine with one file in it. */
export function smallImage(): Content {
  const directory = mkdtempSync(join(tmpdir(), 'layer-'));
  writeFileSync(join(directory, 'file'), 'nothing to run\n');
  const tar = tarOf(directory);
  rmSync(directory, { recursive: true });
  const config = document(mediaTypes.ociConfig, {
    os: 'linux',
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    config: { Entrypoint: ['/no-such-program'] },
    rootfs: { type: 'layers', diff_ids: [document('', tar).digest] },
  });
  return manifest(config, [document(mediaTypes.ociLayer, gzipSync(tar))]);
}
