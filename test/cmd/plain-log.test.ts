import t from 'tap';
import { createPlainLog } from '../../cmd/program/context.ts';
import { secret } from '../../src/telemetry/secret.ts';

t.test('one plain line for each event, without secrets', async (t) => {
  let text = '';
  const log = createPlainLog({ err: (line) => (text += line) }, 'warn');
  const password = 'password-of-the-plain-log';
  secret(password);
  log.info('not said');
  log.warn({ origin: '/etc/x.toml', problem: `has ${password} in it` }, 'some credentials are not used');
  log.error({ err: new Error('no room') }, 'writing failed');
  log.warn('alone');
  t.equal(
    text,
    'archwright: warn: some credentials are not used: origin /etc/x.toml, problem has [secret] in it\n' +
      'archwright: error: writing failed: error no room\n' +
      'archwright: warn: alone\n',
  );
});
