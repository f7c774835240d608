import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { createCa } from './certificates.ts';

t.test('an issued certificate carries names and organizations', async (t) => {
  const ca = await createCa();
  const issued = await ca.issue({
    cn: 'webhook',
    organizations: ['archwright:webhook', 'second'],
    dns: ['localhost'],
    ip: ['127.0.0.1', '::1'],
    uris: ['spiffe://cluster/webhook'],
    client: true,
    server: true,
  });
  const certificate = new X509Certificate(issued.cert);
  t.ok(certificate.verify(new X509Certificate(ca.cert).publicKey));
  t.ok(certificate.checkIssued(new X509Certificate(ca.cert)));
  t.match(certificate.subject, /O=archwright:webhook\nO=second\nCN=webhook/);
  t.match(certificate.subjectAltName, /DNS:localhost, IP Address:127\.0\.0\.1, IP Address:0:0/);
  t.match(certificate.subjectAltName, 'URI:spiffe://cluster/webhook');
  t.same(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
});

t.test('mutual TLS works with it, and not across authorities', async (t) => {
  const [ca, stranger] = [await createCa(), await createCa()];
  const server = await ca.issue({ cn: 'server', ip: ['127.0.0.1'] });
  const listener = createServer({ ...server, ca: ca.cert, requestCert: true, rejectUnauthorized: false });
  listener.on('secureConnection', (socket) => socket.end(socket.authorized ? 'known' : 'stranger'));
  listener.on('tlsClientError', () => undefined);
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.teardown(() => listener.close());
  const { port } = listener.address() as AddressInfo;

  const speak = async (pair: { cert: string; key: string }, trusted: string): Promise<string> => {
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', ...pair, ca: trusted });
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await once(socket, 'close');
    return text;
  };
  t.equal(await speak(await ca.issue({ cn: 'a', client: true }), ca.cert), 'known');
  t.equal(await speak(await stranger.issue({ cn: 'a', client: true }), ca.cert), 'stranger');
  await t.rejects(speak(await ca.issue({ cn: 'a', client: true }), stranger.cert), {
    code: /CERT|SIGNATURE/,
  });
});
