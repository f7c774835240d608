/**
 * tap finds the test of an uncaught error by async hooks on every promise and socket, which take a quarter of
 * the CPU time of server tests. Import this before tap. `room.ts` assigns such an error to the running test.
 */
import hooks from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';

const none: hooks.AsyncHook = { enable: () => none, disable: () => none };
hooks.createHook = () => none;
syncBuiltinESMExports();
