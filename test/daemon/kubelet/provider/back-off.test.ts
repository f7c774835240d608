import t from 'tap';
import { createPauses } from '../../../../daemon/kubelet/provider/back-off.ts';
import { PluginError, type PluginErrorCode } from '../../../../daemon/kubelet/run/plugin-error.ts';
import { stoppedClock } from '../support.ts';

const failure = (image: string, code: PluginErrorCode = 'failed') => ({
  image,
  error: new PluginError(code, 'p', `${code} ${image}`),
});

t.test('pauses double from 10 s, after time-outs from a minute, up to 5 minutes', async (t) => {
  for (const [code, expected] of [
    ['failed', [10, 20, 40, 80, 160, 300, 300]],
    ['timeout', [60, 120, 240, 300, 300]],
  ] as const) {
    const clock = stoppedClock();
    const pauses = createPauses(clock);
    for (const seconds of expected) {
      pauses.failed('a', failure('a', code));
      clock.at += seconds * 1000 - 1;
      t.match(pauses.current('a'), { message: `${code} a` });
      clock.at += 1;
      t.equal(pauses.current('a'), undefined, `${code} ${seconds} s`);
    }
  }
});

t.test('each image is paused for itself, and a success ends it', async (t) => {
  const pauses = createPauses(stoppedClock());
  t.equal(pauses.latest(), undefined);
  pauses.failed('a', failure('a'));
  pauses.failed('b', failure('b'));
  t.equal(pauses.current('c'), undefined);
  t.match(pauses.latest(), { image: 'b' });
  pauses.succeeded('b');
  t.equal(pauses.current('b'), undefined);
  t.match(pauses.latest(), { image: 'a' });
});

t.test('memory is bounded', async (t) => {
  const pauses = createPauses(stoppedClock());
  for (let index = 0; index <= 1000; index += 1) pauses.failed(`${index}`, failure(`${index}`));
  t.equal(pauses.current('0'), undefined);
  t.ok(pauses.current('1'));
});
