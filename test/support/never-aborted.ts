/** The signal of a caller that waits as long as it takes. */
export const neverAborted = new AbortController().signal;
