/**
 * Memory of a process that holds credentials stays where it is: no diagnostic report of Node.js, which lists environment and
 * stack, and nothing worth reading in a core dump. Options of the command line and `NODE_OPTIONS` may have turned them on.
 */
import { writeFileSync } from 'node:fs';

/** No mapping of memory is written into a core dump (core(5)); plugins inherit it. */
const nothing = '0x0';

/**
 * Turns dumps of this process off, as far as the system lets us.
 * @param coredumpFilter where Linux keeps which memory is dumped
 */
export function keepMemoryPrivate(coredumpFilter = '/proc/self/coredump_filter'): void {
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  try {
    writeFileSync(coredumpFilter, nothing);
  } catch {
    // A kernel without it, or a /proc that cannot be written: limits of core dumps are up to who runs the process then.
  }
}
