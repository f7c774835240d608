import { createServer } from 'node:https';
import t from 'tap';
import { probeWebhook } from '../../../../src/controller/features/webhook-configuration/endpoints.ts';
import { createCa } from '../../../support/certificates.ts';
import { listen } from '../../../support/listen.ts';
import { neverAborted } from '../../../support/never-aborted.ts';

t.test('which certificates a probe accepts', async (t) => {
  const root = await createCa('root');
  const [ours, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const name = 'archwright-webhook.archwright.svc';
  const { cert, key } = await ours.issue({ cn: 'webhook', dns: [name] });
  let status = 200;
  const server = createServer({ cert: `${cert}\n${ours.cert}`, key }, (request, response) => {
    response.writeHead(request.url === '/readyz' ? status : 404).end();
  });
  const port = await listen(server);
  t.teardown(() => server.close().closeAllConnections());
  const ask = (ca: string, serverName = name, path = '/readyz'): Promise<string | undefined> =>
    probeWebhook({ host: '127.0.0.1', port, serverName }, path, ca, neverAborted);

  t.equal(await ask(root.cert), undefined, 'a root, through the intermediate that the server presents');
  t.equal(await ask(ours.cert), undefined, 'an intermediate as trust anchor');
  t.match(await ask(other.cert), /issuer|verify/, 'another intermediate of the same root');
  t.match(await ask(ours.cert, 'other.archwright.svc'), /altnames/);
  t.equal(await ask(root.cert, name, '/mutate/other'), 'it answered with status 404');
  status = 503;
  t.equal(await ask(ours.cert), 'it answered with status 503');
});
