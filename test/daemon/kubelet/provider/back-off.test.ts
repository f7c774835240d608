import t from 'tap';
import { PluginBackOff } from '../../../../daemon/kubelet/provider/provider.ts';
import { PluginError, type PluginErrorCode } from '../../../../daemon/kubelet/run/plugin-error.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';

const failure = (image: string, code: PluginErrorCode = 'failed') => ({
  image,
  error: new PluginError(code, 'p', `${code} ${image}`),
});

t.test('the back-off doubles from 10 s, or a minute after a timeout, up to 5 minutes', async (t) => {
  for (const [code, expected] of [
    ['failed', [10, 20, 40, 80, 160, 300, 300]],
    ['timeout', [60, 120, 240, 300, 300]],
  ] as const) {
    const clock = createFakeClock();
    const backOff = new PluginBackOff(clock);
    for (const seconds of expected) {
      backOff.failed('a', failure('a', code));
      await clock.advance(seconds * 1000 - 1);
      t.throws(() => backOff.check('a'), { message: `${code} a` });
      await clock.advance(1);
      t.doesNotThrow(() => backOff.check('a'), `${code} ${seconds} s`);
    }
  }
});

t.test('each image has its own back-off, which a success ends', async (t) => {
  const backOff = new PluginBackOff(createFakeClock());
  t.equal(backOff.latest(), undefined);
  backOff.failed('a', failure('a'));
  backOff.failed('b', failure('b'));
  t.doesNotThrow(() => backOff.check('c'));
  t.match(backOff.latest(), { image: 'b' });
  backOff.succeeded('b');
  t.doesNotThrow(() => backOff.check('b'));
  t.match(backOff.latest(), { image: 'a' });
});

t.test('the number of failures is limited', async (t) => {
  const backOff = new PluginBackOff(createFakeClock());
  for (let index = 0; index <= 1000; index += 1) backOff.failed(`${index}`, failure(`${index}`));
  t.doesNotThrow(() => backOff.check('0'));
  t.throws(() => backOff.check('1'), { message: 'failed 1' });
});
