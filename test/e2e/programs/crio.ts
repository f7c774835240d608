/** The library that CRI-O uses, in a program of our own (`test/e2e/crio/library/main.go`). */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from './cache.ts';
import { buildSource } from './go.ts';

/** CRI-O 1.35 and 1.36 have this version. */
const library = { path: 'go.podman.io/image/v5', version: 'v5.38.0', tags: 'containers_image_openpgp' };

export function crioLibraryProgram(): string {
  const source = readFileSync(join(import.meta.dirname, '../crio/library/main.go'), 'utf8');
  const id = createHash('sha256').update(source).digest('hex').slice(0, 8);
  const path = join(cache, `crio-library-${library.version}-${id}`);
  mkdirSync(cache, { recursive: true });
  if (!existsSync(path)) buildSource(library, source, path);
  return path;
}
