import { once } from 'node:events';
import t from 'tap';
import { onStopSignal, stoppedCode } from '../../../cmd/program/exit.ts';

for (const [name, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  t.test(`the first ${name} requests a stop, the second one ends the process`, async (t) => {
    const end = Promise.withResolvers<number>();
    const stop = onStopSignal(end.resolve);
    // The signal handler does not keep the process alive.
    const alive = setTimeout(() => undefined, 10_000);
    t.teardown(() => clearTimeout(alive));
    t.equal(stop.aborted, false);
    process.kill(process.pid, name);
    await once(stop, 'abort');
    t.equal(stop.reason, name);
    t.equal(stoppedCode(stop), code);
    process.kill(process.pid, name);
    t.equal(await end.promise, code);
  });
}
