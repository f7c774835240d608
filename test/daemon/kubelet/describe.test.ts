/** The description of plugins, with the differences from the kubelet. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { describeEnvironment } from '../../../daemon/kubelet/describe.ts';
import { answering, openNode, openSource, tokenAttributes } from './support.ts';
import { like } from '../../support/like.ts';

t.test('each plugin is described with its state', async (t) => {
  const { bin, config, source } = await openNode(
    t,
    [
      { name: 'z', matchImages: ['*.example', 'registry.test/team'] },
      { name: 'a' },
      { name: 'open' },
      { name: 'token', tokenAttributes },
    ],
    { z: answering({}), open: answering({}), token: answering({}) },
    { noTokens: 'the setting is off' },
  );
  chmodSync(join(bin, 'open'), 0o777);
  await source.refresh();
  const [whole, z, a, open, token, environment, ...more] = await source.describe();
  like(t, whole, {
    where: config,
    state: 'used',
    what: 'plugins: 4',
    differs: [/^the kubelet reads it only when it starts/],
  });
  t.strictSame(z, { where: 'plugin z', state: 'used', what: 'for *.example, registry.test/team' });
  like(t, a, { state: 'left-out', what: /did not exist/, differs: ['a kubelet does not start with this'] });
  like(t, open, { state: 'left-out', what: /can be written by others/, differs: ['the kubelet runs it'] });
  like(t, token, { where: 'plugin token', differs: [/with a token of the pod’s service account/] });
  t.equal(environment?.where, 'environment of plugins');
  t.strictSame(more, []);
});

t.test('a configuration that broke, and one that was never valid, are described', async (t) => {
  const { bin, config, source } = await openNode(t, [{ name: 'a' }], { a: answering({}) });
  writeFileSync(config, '{');
  await source.refresh();
  like(t, await source.describe(), [
    { where: config, state: 'left-out', what: /; the last good one stays in force$/ },
    { where: 'plugin a', state: 'used' },
    {},
  ]);
  rmSync(config);
  const { source: never } = await openSource(t, { config, binDir: bin });
  const [first, ...rest] = await never.describe();
  like(t, first, { state: 'left-out', differs: ['a kubelet does not start with this'] });
  t.notMatch(first?.what, /last good/);
  t.equal(rest.length, 1);
});

t.test('the environment of plugins is described', async (t) => {
  t.strictSame(describeEnvironment({ isRunning: true, service: undefined }), {
    where: 'environment of plugins',
    state: 'used',
    what: 'the variables of the running kubelet',
  });
  like(t, describeEnvironment({ isRunning: false, service: undefined }), {
    state: 'absent',
    differs: [/kubeletEnvironment$/],
  });
});
