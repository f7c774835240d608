import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { probeWebhook } from '../../../src/controller/webhook-configuration/webhook-availability.ts';
import { createCa } from '../../support/certificates.ts';

t.test('whom a probe believes', async (t) => {
  const root = await createCa('root');
  const [ours, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const name = 'archwright-webhook.archwright.svc';
  const { cert, key } = await ours.issue({ cn: 'webhook', dns: [name] });
  let status = 200;
  const server = createServer({ cert: `${cert}\n${ours.cert}`, key }, (request, response) => {
    response.writeHead(request.url === '/readyz' ? status : 404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const ask = (ca: string, serverName = name, path = '/readyz'): Promise<string | undefined> =>
    probeWebhook({ host: '127.0.0.1', port, serverName }, path, ca, AbortSignal.timeout(5000));

  t.equal(await ask(root.cert), undefined, 'a root, by what is shown between');
  t.equal(await ask(ours.cert), undefined, 'an authority that is no root');
  t.match(await ask(other.cert), /issuer|verify/, 'another one of that root');
  t.match(await ask(ours.cert, 'other.archwright.svc'), /altnames/);
  t.equal(await ask(root.cert, name, '/mutate/other'), 'it answered with status 404');
  status = 503;
  t.equal(await ask(ours.cert), 'it answered with status 503');
});
