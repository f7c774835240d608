import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { startup } from '../../cmd/program/context.ts';

t.test('log, metrics and configuration belong together', async (t) => {
  const file = join(t.testdir({ 'a.toml': 'logLevel = "warn"\n' }), 'a.toml');
  const written: string[] = [];
  const { configuration, log, metrics } = await startup({
    sources: { file, env: {}, flags: {} },
    io: {
      env: {},
      stdin: Readable.from([]),
      out: () => t.fail('wrote an answer'),
      err: (text) => written.push(text),
    },
  });
  t.teardown(() => configuration.close());
  t.match(await metrics.render(), /^archwright_build_info\{version="\d/m);
  t.match(await metrics.render(), 'archwright_config_last_reload_successful 1');

  log.info('not shown');
  t.same(written, []);
  writeFileSync(file, 'logLevel = "debug"\n');
  await configuration.refresh();
  log.debug('shown');
  t.match(written.at(-1), '"msg":"shown"');
});
