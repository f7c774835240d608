/** The library that CRI-O uses, in a program of our own (`test/e2e/crio/library/main.go`). */
import { builtSource } from './go.ts';

/** CRI-O 1.35 and 1.36 have this version. */
const library = { path: 'go.podman.io/image/v5', version: 'v5.38.0', tags: 'containers_image_openpgp' };

export function crioLibraryProgram(): string {
  return builtSource('crio-library', library, new URL('../crio/library/main.go', import.meta.url));
}
