import { once } from 'node:events';
import t from 'tap';
import { onStopSignal, stoppedCode } from '../../cmd/program/signals.ts';

for (const [name, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  t.test(`${name} asks to stop, a second one ends`, async (t) => {
    let ended: (code: number) => void = () => undefined;
    const end = new Promise<number>((resolve) => (ended = resolve));
    const stop = onStopSignal((code) => ended(code));
    t.teardown(() => stop.close());
    // Waiting for a signal does not keep a process alive.
    const alive = setTimeout(() => undefined, 10_000);
    t.teardown(() => clearTimeout(alive));
    t.equal(stop.signal.aborted, false);
    process.kill(process.pid, name);
    await once(stop.signal, 'abort');
    t.equal(stop.signal.reason, name);
    t.equal(stoppedCode(stop.signal), code);
    process.kill(process.pid, name);
    t.equal(await end, code);
  });
}

t.test('no longer listens after it is closed', async (t) => {
  const before = process.listenerCount('SIGTERM');
  const stop = onStopSignal();
  t.equal(process.listenerCount('SIGTERM'), before + 1);
  stop.close();
  t.equal(process.listenerCount('SIGTERM'), before);
});
