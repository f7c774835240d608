import { join } from 'node:path';
import t from 'tap';
import { settings } from '../../../src/policy/settings/all.ts';
import { run } from '../run.ts';
import { like } from '../../support/like.ts';
import * as fc from 'fast-check';
import { systemClock } from '../../../src/async/clock.ts';
import { compileOverrides } from '../../../src/images/sources/overrides.ts';
import { registryProxy } from '../../../src/policy/value-kinds/addresses.ts';
import { imageOverride } from '../../../src/policy/value-kinds/architectures.ts';
import { createDefaultEndpoints } from '../../../src/registry/endpoints/endpoint.ts';
import { targetOf } from '../../support/registry/client.ts';

const count = Object.keys(settings).length;

t.test('`config check` counts settings, and lists every problem', async (t) => {
  const dir = t.testdir({
    'good.toml': 'listen = ":1"\ninlineBudget = "1s"\n',
    'bad.toml': 'listen = 1\nlistn = 2\n',
    'clash.toml': 'onUnknownImage = "fallback"\n',
  });
  const good = join(dir, 'good.toml');
  const bad = join(dir, 'bad.toml');
  t.strictSame(await run(['config', 'check', good]), {
    code: 0,
    out: `${good}: valid, 2 of ${count} settings set\n`,
    err: '',
  });
  t.strictSame(await run(['config', 'check', '--config', good, '--drain-time', '1s']), {
    code: 0,
    out: `${good}: valid, 3 of ${count} settings set\n`,
    err: '',
  });
  t.strictSame(await run(['config', 'check', bad]), {
    code: 1,
    out: '',
    err: `${bad}:1: listen must be a string in quotes, not a number\n${bad}:2: listn is not a known setting; did you mean listen?\n`,
  });
  like(t, await run(['config', 'check', join(dir, 'clash.toml')]), {
    code: 1,
    err: /clash\.toml:1: onUnknownImage is fallback/,
  });
  like(t, await run(['config', 'check']), { code: 0, err: '', out: /^configuration: valid, 0 of/ });
});

t.test('a file with which a service would not start is not valid', async (t) => {
  const file = join(
    t.testdir({ 'agent.toml': '[kubeletConfig]\nconfig = "a"\nbinDir = "/b"\n' }),
    'agent.toml',
  );
  like(t, await run(['config', 'check', file]), {
    code: 1,
    out: '',
    err: /^\S+agent\.toml:2: kubeletConfig\.config must be an absolute path, .*; agent would not start\n$/,
  });
  like(t, await run(['config', 'check', file, '--kubelet-config-config=/a']), { code: 0, err: '' });
});

t.test('an unknown architecture leads to a warning', async (t) => {
  const settings = {
    schedulableArchitectures: '["mainframe", "loong64"]',
    preferredArchitecture: '"mainframe"',
    preferredWeights: '{mainframe = 50}',
    fallbackArchitecture: '"mainframe"',
  };
  for (const [key, value] of Object.entries(settings))
    like(t, await run(['config', 'check', '-'], { stdin: `${key} = ${value}\n` }), {
      code: 0,
      err: `warning: ${key}: unknown architecture mainframe\n`,
      out: /: valid, 1 of/,
    });
});

t.test('`-` is standard input', async (t) => {
  t.strictSame(await run(['config', 'check', '-'], { stdin: 'listen = ":1"\n' }), {
    code: 0,
    out: `standard input: valid, 1 of ${count} settings set\n`,
    err: '',
  });
  const printed = await run(['config', 'print', '-'], { stdin: 'listen = ":1"\n' });
  t.ok(printed.out.split('\n').includes('listen = ":1" # file standard input:1'));
  like(t, await run(['config', 'print', '-'], { stdin: 'listen = 1\nlistn = 2\n' }), {
    code: 2,
    out: '',
    err: /^archwright: standard input:1: listen must be a string.*\narchwright: standard input:2: listn is.*\n$/,
  });
});

t.test('`config print` shows each value and its origin', async (t) => {
  const dir = t.testdir({ 'a.toml': 'listen = ":1"\n[preferredWeights]\narm64 = 3\n' });
  const file = join(dir, 'a.toml');
  const env = { ARCHWRIGHT_INLINE_BUDGET: '1000ms' };
  const { code, out } = await run(['config', 'print', file, '--agents', 'https://a', '--agents=https://b'], {
    env,
  });
  t.equal(code, 0);
  for (const line of [
    `listen = ":1" # file ${file}:1`,
    `preferredWeights = { arm64 = 3 } # file ${file}:2`,
    'inlineBudget = "1s" # environment ARCHWRIGHT_INLINE_BUDGET',
    'agents = ["https://a", "https://b"] # flag --agents',
    'cacheSize = "64Mi" # default',
    '# stateDir is not set',
  ]) {
    t.ok(out.split('\n').includes(line), line);
  }
  const json = JSON.parse((await run(['config', 'print', file, '-o', 'json'], { env })).out) as object;
  like(t, json, {
    listen: { value: ':1', origin: `file ${file}:1` },
    inlineBudget: { value: '1s', origin: 'environment ARCHWRIGHT_INLINE_BUDGET' },
    stateDir: { value: null, origin: 'default' },
  });
});

t.test('the output of `config print` is a configuration file with the same values', async (t) => {
  const flags = [
    '--preferred-weights=arm64=3,s390x=1',
    '--tolerations={ key = "arch", effect = "NoSchedule" }',
    '--image-overrides=[{ match = "a.io/b*/**:c", architectures = [] }]',
    '--architectures={ arm64 = { taintsToTolerate = [{ operator = "Exists" }], requireNodeLabels = { "a.b/c" = "d" } } }',
    '--no-tolerate-architecture-taint',
    '--proxies=docker.io=mirror:5000/hub',
    '--cache-size=100000000',
    '--if-not-present-cache-time=1d1h1m1s1ms',
  ];
  const { out, err } = await run(['config', 'print', ...flags]);
  t.equal(err, '');
  const file = join(t.testdir({ 'printed.toml': out }), 'printed.toml');
  const again = await run(['config', 'print', file]);
  const values = (text: string) => text.replaceAll(/ # (?:default|flag|file) ?.*$/gm, '');
  t.equal(values(again.out), values(out));
});

// A value that the configuration accepts must not fail in use, where it would fail for every pod.

t.test('property: every accepted pattern compiles', async (t) => {
  const unit = fc.constantFrom('a', 'b', '*', '**', '/', ':', '@', '.', '5', ' ', '[', '(');
  const sound = fc.stringMatching(/^[ab5]{1,2}(\/([ab5]|\*{1,2}){1,2}){0,2}(:[ab5*])?$/);
  let accepted = 0;
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit, maxLength: 14 }), sound), (match) => {
      const override = imageOverride.read({ match, architectures: [] }, () => undefined);
      if (!override) return;
      accepted++;
      compileOverrides([override], systemClock);
    }),
    { numRuns: 2000 },
  );
  t.ok(accepted > 100, `${accepted} were accepted`);
});

t.test('property: every accepted proxy gives an endpoint', async (t) => {
  const unit = fc.constantFrom('a', 'b', '=', '/', ':', '.', '5', '[', ']', '-', '@', 'http://');
  const sound = fc.stringMatching(/^(http:\/\/)?[ab5]{1,2}(\.[ab]{1,2})?(:5{1,3})?(\/[ab5-]{0,2}){0,2}$/);
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string({ unit, maxLength: 8 }), sound), async (text) => {
      const proxy = registryProxy.read(`docker.io=${text}`, () => undefined);
      if (!proxy) return;
      accepted++;
      const source = createDefaultEndpoints({ proxies: { [proxy.registry]: proxy.endpoint } });
      t.equal((await source.endpoints(targetOf('docker.io'))).length, 2, text);
    }),
    { numRuns: 1000 },
  );
  t.ok(accepted > 100, `${accepted} were accepted`);
});
