import { Readable } from 'node:stream';
import t from 'tap';
import '../../cmd/webhook.ts';
import { main } from '../../cmd/program/main.ts';
import { createPki } from '../fleet/support.ts';
import { send } from '../serving/support.ts';
import { until } from '../support/until.ts';
import { files, kubeconfig } from './world.ts';
import { like } from '../support/like.ts';

t.test('before it has found agents, it listens but is not ready', async (t) => {
  const { serverDir, clientDir } = await createPki(t);
  const stop = new AbortController();
  let log = '';
  const args = ['webhook', '--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0'];
  args.push('--tls-dir', serverDir, '--agents', 'endpointslices:a/b', '--agent-tls-dir', clientDir);
  // Nothing listens there.
  args.push('--kubeconfig', files(t, { config: kubeconfig('https://127.0.0.1:1') }).config);
  const ended = main(args, {
    io: { env: {}, stdin: Readable.from(['']), out: () => undefined, err: (text) => (log += text) },
    stop: stop.signal,
  });
  const health = (): string | undefined => /"health":"([^"]+)"/.exec(log)?.[1];
  await until(() => health() !== undefined, 'health is served', 20_000);
  like(t, await send(`${health()}/readyz`, { agent: false }), { status: 503, body: /\[-\]warm-up failed/ });
  const { body } = await send(`${health()}/metrics`, { agent: false });
  t.match(body, /^archwright_fleet_available [01]$/m, 'the alert ArchwrightNoAgents follows this');
  stop.abort();
  t.equal(await ended, 0);
});
