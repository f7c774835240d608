/** TLS files where the servers look for them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { IssueOptions, TestCa } from '../../test/support/certificates.ts';

/**
 * Writes `tls.crt`, `tls.key` and `ca.crt` into a new directory.
 * @returns its path
 */
export async function writeTls(ca: TestCa, path: string, issue: IssueOptions): Promise<string> {
  const { cert, key } = await ca.issue(issue);
  await mkdir(path);
  await writeFile(join(path, 'tls.crt'), cert);
  await writeFile(join(path, 'tls.key'), key);
  await writeFile(join(path, 'ca.crt'), ca.cert);
  return path;
}
