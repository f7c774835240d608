/** Processes that tests start share compiled modules. This halves the CPU time of starting the program. */
import { fileURLToPath } from 'node:url';

const directory = new URL('../../node_modules/.cache/archwright-tests/', import.meta.url);

export const compileCache = { NODE_COMPILE_CACHE: fileURLToPath(directory) };
