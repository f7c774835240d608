/** The row `docker hub`: from a registry's headers, over an agent and the leader, to `status`. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import '../../../cmd/controller.ts';
import { main } from '../../../cmd/program/main.ts';
import { createPki } from '../../fleet/support.ts';
import { multiArch } from '../../support/registry/content.ts';
import { until } from '../../support/until.ts';
import { agentArgs, startAgent } from '../agent/agent.ts';
import { core, installation } from '../installation/installation.ts';
import { run } from '../run.ts';
import { directory, registry } from '../world.ts';

t.test('what a registry says about its limit is in `status`', async (t) => {
  const hub = await registry(t, { tls: false });
  const content = multiArch(['linux/amd64', 'linux/arm64']);
  hub.push('library/app', 'v1', content);
  const headers = {
    'content-type': content.mediaType,
    'ratelimit-limit': '100;w=21600',
    'ratelimit-remaining': '76;w=21600',
  };
  hub.faults.add(/manifests/, { kind: 'status', status: 200, headers, body: content.bytes.toString() });

  const host = directory(t);
  mkdirSync(join(host, 'state'));
  const pki = await createPki(t);
  const agent = await startAgent(t, pki, [
    ...agentArgs(pki, join(host, 'state')),
    `--host-root=${host}`,
    `--proxies=docker.io=http://${hub.host}`,
  ]);
  const [found] = await agent.post({ images: [{ image: 'app:v1' }], deadlineMs: 10_000 });
  t.equal(found?.error, undefined);

  const { store, config, states, refresh } = await installation(t);
  states.delete('archwright-controller-a');
  await refresh();
  const url = agent.lines().find(({ api }) => api !== undefined)?.api ?? '';
  const stop = new AbortController();
  let log = '';
  const args = ['controller', '--kubeconfig', config, '--namespace', 'archwright', '--agents', url];
  const ended = main(
    [...args, '--certificates=external', '--agent-tls-dir', pki.clientDir, '--metrics-listen=127.0.0.1:0'],
    {
      io: { env: {}, stdin: Readable.from([]), out: () => undefined, err: (text) => (log += text) },
      stop: stop.signal,
    },
  );
  t.teardown(() => (stop.abort('SIGTERM'), ended));
  const status = async (): Promise<string> => {
    const health = /"health":"([^"]+)"/.exec(log)?.[1];
    if (health === undefined) return '';
    const page = await (await fetch(`${health}/metrics`)).text();
    store.page(`${core}/pods/archwright-controller-a:8080/proxy/metrics`, () => page);
    return (await run(['status', '--kubeconfig', config])).out;
  };
  let out = '';
  await until(async () => /^docker hub/m.test((out = await status())), 'the row');
  t.match(out, /^docker hub +76 of 100 requests left$/m);
});
