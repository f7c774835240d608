import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { configurationHash, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { liveConfiguration } from '../../../src/policy/configuration/live.ts';
import { ConfigurationError } from '../../../src/policy/configuration/layer.ts';
import { captureLog, recordingLog, silentLog } from '../../support/captured.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { noTimers } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';

async function open(t: Test, content: string, env: Record<string, string> = {}) {
  const file = join(t.testdir({ 'archwright.toml': content }), 'archwright.toml');
  const { log, lines } = recordingLog();
  const metrics = createMetrics();
  const clock = { ...noTimers, now: () => 1_700_000_000_500, monotonic: () => 0 };
  // Tests call `refresh`, so they do not wait for the file system.
  const watch = { pollMs: 3_600_000, debounceMs: 3_600_000 };
  const live = await liveConfiguration({ file, env, flags: {}, log, metrics, clock, watch });
  t.teardown(() => live.close());
  const seen: Configuration[] = [];
  live.onChange((configuration) => seen.push(configuration));
  return {
    live,
    lines,
    seen,
    page: () => metrics.render(),
    file,
    write: async (text: string) => {
      writeFileSync(file, text);
      await live.refresh();
    },
  };
}

function quiet() {
  return { env: {}, flags: {}, log: silentLog, metrics: createMetrics() };
}

t.test('a change is applied and logged', async (t) => {
  const { live, lines, seen, write, page } = await open(t, 'inlineBudget = "100ms"\n');
  const first = live.current();
  t.equal(first.inlineBudget, 100);
  t.match(await page(), 'archwright_config_last_reload_successful 1');
  t.match(await page(), 'archwright_config_last_reload_success_timestamp_seconds 1700000000\n');

  await write('preferredArchitecture = "arm64"\ninlineBudget = "100ms"\n');
  like(t, live.current(), { preferredArchitecture: 'arm64', inlineBudget: 100 });
  t.strictSame(seen, [live.current()]);
  like(t, lines, [{ level: 'info', msg: 'configuration changed', changed: ['preferredArchitecture'] }]);
  t.equal(lines.length, 1);
  t.match(await page(), 'archwright_config_reloads_total{outcome="loaded"} 1');
});

t.test('the hash is that of the last good file', async (t) => {
  const { live, lines, write, page } = await open(t, 'inlineBudget = "1s"\n');
  const shown = async (): Promise<readonly string[]> =>
    (await page()).split('\n').filter((line) => line.startsWith('archwright_configuration_info'));
  const expected = (text: string): readonly string[] => [
    `archwright_configuration_info{hash="${configurationHash(text)}"} 1`,
  ];
  t.match(configurationHash('inlineBudget = "1s"\n'), /^[0-9a-f]{12}$/);
  t.strictSame(await shown(), expected('inlineBudget = "1s"\n'));
  const first = live.current();
  await write('# nothing new\ninlineBudget = "1000ms"\n');
  t.strictSame(await shown(), expected('# nothing new\ninlineBudget = "1000ms"\n'));
  t.equal(live.current(), first, 'the same values in another form are no change');
  t.strictSame(lines, []);
  await write('logLevel = "loud"\n');
  t.strictSame(await shown(), expected('# nothing new\ninlineBudget = "1000ms"\n'), 'not of a broken file');
});

t.test('a broken file is logged once, and the last good one stays in force', async (t) => {
  const { live, lines, seen, write, page } = await open(t, 'inlineBudget = "100ms"\n');
  const first = live.current();
  await write('inlineBudget = "100ms"\n\nlogLevel = "loud"\nlistn = ":1"\n');
  await live.refresh();
  t.equal(live.current(), first);
  t.strictSame(seen, []);
  t.equal(lines.length, 1);
  like(t, lines[0], {
    level: 'error',
    line: 3,
    key: 'logLevel',
    problem: /logLevel must be one of.*\n.*:4: listn is not a known/,
  });
  t.match(await page(), 'archwright_config_last_reload_successful 0');
  t.match(await page(), 'archwright_config_reloads_total{outcome="failed"} 1');

  await write('inlineBudget = "200ms"\n');
  t.equal(live.current().inlineBudget, 200);
  t.match(await page(), 'archwright_config_last_reload_successful 1');
});

t.test('settings that need a restart are logged', async (t) => {
  const { lines, write } = await open(t, '');
  await write('listen = ":1"\nlogLevel = "debug"\n');
  like(t, lines, [
    { level: 'info', changed: ['listen', 'logLevel'] },
    { level: 'warn', changed: ['listen'], msg: /when the program starts again/ },
  ]);
});

t.test('environment and flags override a changed file', async (t) => {
  const { live, write } = await open(t, '', { ARCHWRIGHT_INLINE_BUDGET: '5ms' });
  await write('inlineBudget = "9ms"\n');
  t.equal(live.current().inlineBudget, 5);
});

t.test('a broken file at the start is thrown, not logged', async (t) => {
  const file = join(t.testdir({ 'archwright.toml': 'a = 1\nb = 2\n' }), 'archwright.toml');
  const { log, lines } = captureLog();
  await t.rejects(liveConfiguration({ ...quiet(), file, log }), {
    name: 'ConfigurationError',
    problems: [{ line: 1 }, { line: 2 }],
  });
  t.strictSame(lines, []);
});

t.test('works without a file', async (t) => {
  const options = { ...quiet(), env: { ARCHWRIGHT_LISTEN: ':1' } };
  const live = await liveConfiguration(options);
  t.teardown(() => live.close());
  t.equal(live.current().listen, ':1');
  await t.rejects(liveConfiguration({ ...options, flags: { listen: '' } }), ConfigurationError);
});
