/** What makes a pull of containerd fail before any host is asked, such as a CA file of hosts.toml that cannot be read. */
import { RegistryError } from '../../src/registry/lookup.ts';

/**
 * @param namespace whose pulls fail
 * @param message what is wrong with which file, and no value of it
 */
export function lookupError(namespace: string, message: string, cause?: unknown): RegistryError {
  return new RegistryError(
    'unavailable',
    namespace,
    `the node's containerd cannot pull from ${namespace}: ${message}`,
    cause === undefined ? {} : { cause },
  );
}

/** A fault in the files of a host; `lookupError` makes a pull's error of it. */
export class HostFilesError extends Error {
  readonly code = 'host-files';
  readonly temporary = true;
  /** The file at fault. */
  readonly where: string;
  /** The message without the file. */
  readonly reason: string;
  constructor(where: string, reason: string, cause?: unknown) {
    super(`${where}: ${reason}`, cause === undefined ? undefined : { cause });
    this.name = 'HostFilesError';
    this.where = where;
    this.reason = reason;
  }
}
