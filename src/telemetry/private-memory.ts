/**
 * Keeps the memory of a process with credentials private: no diagnostic reports of Node.js, which contain
 * environment and stack, and empty core dumps, even if the command line or `NODE_OPTIONS` enables them.
 */
import { writeFileSync } from 'node:fs';

/** Core dumps contain no memory mapping (core(5)). Child processes inherit it. */
const nothing = '0x0';

/** Disables dumps of this process, if possible. @param coredumpFilter the kernel's setting */
export function keepMemoryPrivate(coredumpFilter = '/proc/self/coredump_filter'): void {
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  try {
    writeFileSync(coredumpFilter, nothing);
  } catch {
    // The kernel lacks it, or /proc is read-only. Then the limits of the process decide about core dumps.
  }
}
