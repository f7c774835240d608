/** `--html FILE`. The code of the page is loaded only for it. */
import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileError } from '../../src/files/read.ts';
import { UsageError, type Invocation } from '../program/subcommand.ts';
import { programVersion } from '../program/version.ts';
import type { JudgedPod } from './rows.ts';

/**
 * The file of the page, if there is to be one. A folder that cannot be written is an error before the images are looked up.
 * @throws UsageError
 */
export async function pageFile(flags: Invocation['flags']): Promise<string | undefined> {
  const path = flags.get('html')?.at(-1);
  if (path === undefined) return undefined;
  const other = ['output', 'by', 'drift'].find((name) => flags.has(name));
  if (other !== undefined) throw new UsageError(`--html and --${other} exclude each other`);
  if (path !== '-') await access(dirname(path), constants.W_OK).catch(unwritable(dirname(path)));
  return path;
}

/** @throws UsageError if the file cannot be written */
export async function writePage(
  path: string,
  report: { readonly architecture: string; readonly asked: string; readonly pods: readonly JudgedPod[] },
  { flags, io }: Pick<Invocation, 'flags' | 'io'>,
): Promise<void> {
  const { reportPage } = await import('./page/page.ts');
  const namespaces = [...new Set(flags.get('namespace'))];
  const { version } = programVersion;
  const text = reportPage({ ...report, namespaces, made: new Date(), version });
  if (path === '-') io.out(text);
  else {
    await writeFile(path, text).catch(unwritable(path));
    io.err(`archwright report: ${path} written\n`);
  }
}

function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    throw new UsageError(`--html: ${fileError(path, error).message.replace('read', 'written')}`);
  };
}
