/** The version of the program: built into the bundle, else from `package.json`. */
import { readFileSync } from 'node:fs';

/** Read once. `scripts/bundle.ts` replaces both variables. */
export const programVersion = {
  /** Such as `0.1.0`. */
  version: process.env.ARCHWRIGHT_BUILT_VERSION ?? packageVersion(),
  /** Commit of the build; `source` if it runs from source. */
  commit: process.env.ARCHWRIGHT_BUILT_COMMIT ?? 'source',
};

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
