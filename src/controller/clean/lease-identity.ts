/** The identity of `archwright clean` in the Lease. */

/** Prefix of the holder's identity. Names of pods contain no slash. */
export const cleanHolder = 'archwright-clean/';

/** Whether a Lease is held by `archwright clean`. */
export function isCleanHolder(holder: string | undefined): boolean {
  return holder?.startsWith(cleanHolder) === true;
}
