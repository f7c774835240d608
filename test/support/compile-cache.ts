/** Processes that tests start share their compiled modules: starting the program costs half as much. */
import { fileURLToPath } from 'node:url';

const directory = new URL('../../node_modules/.cache/archwright-tests/', import.meta.url);

/** For the environment of a process that runs the program. */
export const compileCache = { NODE_COMPILE_CACHE: fileURLToPath(directory) };
