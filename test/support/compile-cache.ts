/** Processes that tests start share their compiled modules: starting the program costs half as much. */
import { fileURLToPath } from 'node:url';

const directory = new URL('../../node_modules/.cache/archwright-tests/', import.meta.url);

export const compileCache = { NODE_COMPILE_CACHE: fileURLToPath(directory) };
