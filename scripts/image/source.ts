/** The source of the image: version, commit and its time. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Source {
  readonly version: string;
  /** Full hash; `unknown` outside of a repository. */
  readonly commit: string;
  /** Seconds since 1970, of the commit; `SOURCE_DATE_EPOCH` wins. */
  readonly time: number;
  /** Whether files differ from the commit. */
  readonly isChanged: boolean;
}

/** Looks at the repository in the working directory. */
export function sourceOf(): Source {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const epoch = process.env['SOURCE_DATE_EPOCH'];
  const commit = process.env['ARCHWRIGHT_COMMIT'] ?? git('rev-parse', 'HEAD');
  const time = Number(epoch ?? git('log', '-1', '--format=%ct') ?? 0);
  return {
    version,
    commit: commit ?? 'unknown',
    time,
    isChanged: git('status', '--porcelain', '--untracked-files=no') !== '',
  };
}

function git(...args: readonly string[]): string | undefined {
  try {
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
