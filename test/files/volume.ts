/**
 * A mounted Kubernetes volume, written as the kubelet writes it (kubernetes
 * pkg/volume/util/atomic_writer.go).
 */
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Replaces the whole content of a volume by swapping its link `..data`. */
export function swapVolume(dir: string, files: Readonly<Record<string, string>>): void {
  const old = readdirSync(dir).filter((name) => /^\.\.v\d+$/.test(name));
  const version = `..v${Math.max(0, ...old.map((name) => Number(name.slice(3)))) + 1}`;
  mkdirSync(join(dir, version));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, version, name), content);
  symlinkSync(version, join(dir, '..data_tmp'));
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
  for (const name of Object.keys(files)) {
    if (!readdirSync(dir).includes(name)) symlinkSync(`..data/${name}`, join(dir, name));
  }
  for (const name of readdirSync(dir)) {
    if (!name.startsWith('..') && !(name in files)) rmSync(join(dir, name));
  }
  for (const name of old) rmSync(join(dir, name), { recursive: true });
}
