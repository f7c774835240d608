/** Values made of the live configuration. */
import type { Configuration } from '../../src/policy/configuration/configuration.ts';

/** Calls `make` once for each configuration, so that the same configuration gives the same value. */
export function derived<T>(
  configuration: () => Configuration,
  make: (configuration: Configuration) => T,
): () => T {
  let last: { readonly from: Configuration; readonly value: T } | undefined;
  return () => {
    const from = configuration();
    if (last?.from !== from) last = { from, value: make(from) };
    return last.value;
  };
}
