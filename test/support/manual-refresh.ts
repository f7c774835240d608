/** Options of a source that reads only at `refresh`: it reports no change by itself before a test ends. */
export const manualRefresh = { pollMs: 600_000, debounceMs: 600_000 };
