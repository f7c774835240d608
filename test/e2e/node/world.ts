/**
 * The registries for containerd and the agent: recording servers on loopback. Some have addresses (127.0.0.2
 * …), others names that only a proxy resolves. Both sides get the proxy from their environment, so
 * `docker.io` works too. Each case sets the behavior of each registry.
 */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type Server, type Socket } from 'node:net';
import { createCa, type TestCa } from '../../support/certificates.ts';
import { closedPort, listen as listenAt } from '../../support/listen.ts';
import { connection, respond, type Behavior, type Recorded, type Stock } from './registry.ts';

/** Hosts by their special property; values as in image references and hosts.toml. */
export type Places = Readonly<Record<PlaceName, string>>;

export const placeNames = [
  'secure',
  'secure2',
  'private',
  'mutual',
  'plain',
  'plain2',
  'localhost',
  'gone',
  'hub',
  'origin',
  'originPort',
  'mirror',
  'mirrorPrivate',
  'plainName',
  'missing',
] as const;
export type PlaceName = (typeof placeNames)[number];

/** Names behind the proxy. For `missing` it returns 502. */
const names = {
  hub: 'registry-1.docker.io',
  origin: 'origin.example',
  originPort: 'origin.example:5000',
  mirror: 'mirror.example',
  mirrorPrivate: 'mirror2.example',
  plainName: 'plain.example',
  missing: 'missing.example',
} as const satisfies Partial<Record<PlaceName, string>>;

/** A token server that is not a registry. */
export const tokenHost = 'auth.example';

export type World = Awaited<ReturnType<typeof createWorld>>;

export async function createWorld() {
  const [publicCa, privateCa, clientCa] = [
    await createCa('public'),
    await createCa('private'),
    await createCa('client'),
  ];
  const records: Recorded[] = [];
  let stock: Stock = { repository: '', objects: new Map() };
  let behaviors: ReadonlyMap<string, Behavior> = new Map();
  const open: Server[] = [];
  const sockets = new Set<Socket>();

  /** Connections without a request so far, by the client's port. */
  const unused = new Map<number, Recorded>();

  /** A connection without a request stays in the records: its handshake failed. */
  function connected(host: string, port: number | undefined): void {
    const record = connection(host);
    records.push(record);
    if (port !== undefined) unused.set(port, record);
  }

  /** @param name instead of the address; empty behind the proxy, which resolves it */
  async function listen(server: Server, address: string, name = address): Promise<string> {
    let host = '';
    server.on('connection', (socket: Socket) => {
      if (name !== '') connected(host, socket.remotePort);
      sockets.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    });
    server.on('tlsClientError', () => undefined);
    open.push(server);
    const port = await listenAt(server, address);
    host = `${name}:${port}`;
    return name === '' ? `${address}:${port}` : host;
  }

  const handler = (scheme: 'http' | 'https') => (request: IncomingMessage, response: ServerResponse) => {
    const port = request.socket.remotePort ?? 0;
    const record = unused.get(port);
    if (record && records.includes(record)) records.splice(records.indexOf(record), 1);
    unused.delete(port);
    const host = (request.headers.host ?? '').toLowerCase();
    respond({ scheme, host, request, response, behavior: behaviors.get(host), stock, records });
  };

  async function secure(
    ca: TestCa,
    address: string,
    { dns = [], mutual = false }: { dns?: readonly string[]; mutual?: boolean } = {},
  ): Promise<string> {
    const pair = await ca.issue({ cn: 'registry', dns, ip: [address] });
    const clients = mutual ? { ca: clientCa.cert, requestCert: true, rejectUnauthorized: true } : {};
    return listen(
      createHttpsServer({ ...pair, ...clients }, handler('https')),
      address,
      dns.length > 0 ? '' : address,
    );
  }

  const plain = (address: string, name = address): Promise<string> =>
    listen(createHttpServer(handler('http')), address, name);

  const publicNames = [names.hub, 'origin.example', names.mirror, tokenHost];
  const places: Places = {
    secure: await secure(publicCa, '127.0.0.2'),
    secure2: await secure(publicCa, '127.0.0.3'),
    private: await secure(privateCa, '127.0.0.4'),
    mutual: await secure(privateCa, '127.0.0.5', { mutual: true }),
    plain: await plain('127.0.0.6'),
    plain2: await plain('127.0.0.7'),
    localhost: await plain('127.0.0.1', 'localhost'),
    gone: `127.0.0.8:${await closedPort('127.0.0.8')}`,
    ...names,
  };
  const behind = new Map<string, string>();
  const publicAddress = await secure(publicCa, '127.0.0.9', { dns: publicNames });
  for (const name of publicNames) behind.set(`${name}:443`, publicAddress);
  behind.set('origin.example:5000', publicAddress);
  const privateAddress = await secure(privateCa, '127.0.0.9', { dns: [names.mirrorPrivate] });
  behind.set(`${names.mirrorPrivate}:443`, privateAddress);
  behind.set(`${names.plainName}:443`, await plain('127.0.0.9', ''));
  const proxy = await listen(createProxy(behind, handler('http'), sockets, connected), '127.0.0.10', '');

  return {
    places,
    /** Trusted by the node: its bundle holds it. */
    publicCa: publicCa.cert,
    /** Trusted only if a file of the node names it. */
    privateCa: privateCa.cert,
    /** The client certificate that `mutual` requires. */
    client: await clientCa.issue({ cn: 'node', client: true }),
    env: { HTTPS_PROXY: `http://${proxy}`, HTTP_PROXY: `http://${proxy}` },
    records,
    /** Sets the behavior of each host (default: 404) and clears the records. */
    arrange: (newStock: Stock, newBehaviors: ReadonlyMap<string, Behavior>): void => {
      stock = newStock;
      behaviors = newBehaviors;
      records.length = 0;
    },
    clear: (): void => {
      records.length = 0;
    },
    close: async (): Promise<void> => {
      const closed = open.map((server) => once(server, 'close'));
      for (const server of open) server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

/** A forward proxy: CONNECT to the server behind a name; it handles plain requests itself. */
function createProxy(
  behind: ReadonlyMap<string, string>,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  sockets: Set<Socket>,
  connected: (host: string, port: number | undefined) => void,
): Server {
  const server = createHttpServer((request, response) => {
    const url = URL.parse(request.url ?? '');
    if (!url || !(behind.has(`${url.hostname}:443`) || behind.has(url.host))) {
      response.writeHead(502).end();
      return;
    }
    request.url = `${url.pathname}${url.search}`;
    handle(request, response);
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const target = (request.url ?? '').toLowerCase();
    const [address, port] = behind.get(target)?.split(':') ?? [];
    if (address === undefined || port === undefined) {
      connected(target, undefined);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return;
    }
    const onward = connect(Number(port), address, () => {
      connected(target, onward.localPort);
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket);
      socket.pipe(onward);
    });
    sockets.add(onward);
    onward.on('error', () => socket.destroy());
    onward.on('close', () => {
      sockets.delete(onward);
      socket.destroy();
    });
    socket.on('close', () => onward.destroy());
  });
  return server;
}
