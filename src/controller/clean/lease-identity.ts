/** How `archwright clean` calls itself in the Lease, for those who meet it there. */

/** What the holder's name begins with while a cluster is cleaned; no pod can have a slash in its name. */
export const cleanHolder = 'archwright-clean/';

/** Whether a Lease is held by `archwright clean`. */
export function isCleanHolder(holder: string | undefined): boolean {
  return holder?.startsWith(cleanHolder) === true;
}
