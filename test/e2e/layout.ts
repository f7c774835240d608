/** Images that runtimes can unpack, and OCI layouts on disk. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  document,
  index,
  manifest,
  mediaTypes,
  platformOf,
  type Content,
} from '../support/registry/content.ts';

/** An empty tar archive: two blocks of zeros. */
export const emptyTar: Buffer = Buffer.alloc(1024);
const maxTarBytes = 64 * 1024 * 1024;

/** An image of one layer. @param platform such as `linux/arm/v7` @param config its `config` */
export function unpackable(platform: string, tar: Buffer = emptyTar, config: object = {}): Content {
  const rootfs = { type: 'layers', diff_ids: [document('', tar).digest] };
  const image = document(mediaTypes.ociConfig, { ...platformOf(platform), config, rootfs });
  return manifest(image, [document(mediaTypes.ociLayer, gzipSync(tar))]);
}

export function unpackableIndex(
  platforms: readonly string[],
  tar: Buffer = emptyTar,
  config: object = {},
): Content {
  return index(
    platforms.map((platform) => ({
      content: unpackable(platform, tar, config),
      platform: platformOf(platform),
    })),
  );
}

/** A folder as a tar archive, the same bytes each time. */
export function tarOf(directory: string): Buffer {
  const flags = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  return execFileSync('tar', [...flags, '-C', directory, '-cf', '-', '.'], { maxBuffer: maxTarBytes });
}

/** Runs only `sleep`. */
export const waiting = { Entrypoint: ['/busybox', 'sleep', '100000'] };

export function busyboxTar(busybox: string): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'busybox-'));
  copyFileSync(busybox, join(directory, 'busybox'));
  const tar = tarOf(directory);
  rmSync(directory, { recursive: true });
  return tar;
}

/** Writes a layout with this document and everything that it refers to. Default name: `1`. */
export function writeLayout(
  directory: string,
  top: Content,
  annotations: Readonly<Record<string, string>> = { 'org.opencontainers.image.ref.name': '1' },
): void {
  const blobs = join(directory, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const write = ({ digest, bytes, children, blobs: parts }: Content): void => {
    writeFileSync(join(blobs, digest.replace('sha256:', '')), bytes);
    for (const part of [...children, ...parts]) write(part);
  };
  write(top);
  const { mediaType, digest, bytes } = top;
  const manifests = [{ mediaType, digest, size: bytes.length, annotations }];
  writeFileSync(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}
