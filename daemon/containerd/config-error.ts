/** Errors in containerd's configuration. Messages name files, lines and settings, never a value that may be a secret. */
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { secret, type Secret } from '../../src/telemetry/secret.ts';

/**
 * containerd refuses the content of a file.
 *
 * - `syntax`: it is not TOML
 * - `type`: a value has another type than containerd's struct
 * - `invalid`: it is well formed but contradictory or meaningless
 */
export class InvalidConfig extends Error {
  readonly code: 'syntax' | 'type' | 'invalid';
  readonly temporary = false;
  /** containerd's own message, if it quotes a possible secret: the value of a header, or the user info of a URL. */
  readonly upstream: Secret | undefined;
  constructor(code: InvalidConfig['code'], message: string, upstream = message) {
    super(message);
    this.name = 'InvalidConfig';
    this.code = code;
    this.upstream = upstream === message ? undefined : secret(upstream);
  }
}

/** A file that makes containerd's start or its pulls fail. */
export class ConfigFileError extends Error {
  readonly code = 'config-file';
  readonly temporary = true;
  /** Path of the file. */
  readonly where: string;
  /** The message without the path. */
  readonly reason: string;
  constructor(where: string, reason: string, cause?: unknown) {
    super(`${where}: ${reason}`, cause === undefined ? undefined : { cause });
    this.name = 'ConfigFileError';
    this.where = where;
    this.reason = reason;
  }
}

/**
 * The error of a lookup if containerd's pull would fail before it contacts any host, for example because of an unreadable CA file.
 * @param namespace registry namespace of the image
 */
export function lookupError(namespace: string, message: string, cause?: unknown): RegistryError {
  return new RegistryError(
    'unavailable',
    namespace,
    `the node's containerd cannot pull from ${namespace}: ${message}`,
    cause === undefined ? {} : { cause },
  );
}
