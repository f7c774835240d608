/**
 * The registries that containerd and the agent are sent to: recording servers on loopback. Some are named by their address
 * (127.0.0.2 …), others by names that only a proxy knows; both sides find the proxy in their environment, so that no name is
 * ever resolved and `docker.io` can be tried too. What each does is set anew for each case.
 */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net';
import { createCa, type PemPair, type TestCa } from '../../support/certificates.ts';
import { connection, respond, type Behavior, type Recorded, type Stock } from './registry.ts';

/** Hosts by what is special about them; values are what an image reference or a hosts.toml names. */
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

/** Names behind the proxy, and who answers for them. `missing` gets a 502 from the proxy. */
const names = {
  hub: 'registry-1.docker.io',
  origin: 'origin.example',
  originPort: 'origin.example:5000',
  mirror: 'mirror.example',
  mirrorPrivate: 'mirror2.example',
  plainName: 'plain.example',
  missing: 'missing.example',
} as const satisfies Partial<Record<PlaceName, string>>;

/** A token server that is no registry. */
export const tokenHost = 'auth.example';

export interface World {
  readonly places: Places;
  /** Trusted by the node: its bundle holds it. */
  readonly publicCa: string;
  /** Trusted where a file says so. */
  readonly privateCa: string;
  /** What `mutual` wants to see. */
  readonly client: PemPair;
  /** Proxy variables for both sides. */
  readonly env: Readonly<Record<string, string>>;
  /** What was asked since the last `arrange`. */
  readonly records: readonly Recorded[];
  /** Sets what each host does (nothing: 404 for everything) and forgets what was asked. */
  arrange(stock: Stock, behaviors: ReadonlyMap<string, Behavior>): void;
  /** Forgets what was asked. */
  clear(): void;
  close(): Promise<void>;
}

export async function createWorld(): Promise<World> {
  const [publicCa, privateCa, clientCa] = await Promise.all([
    createCa('public test CA'),
    createCa('private test CA'),
    createCa('client test CA'),
  ]);
  const records: Recorded[] = [];
  let stock: Stock = { repository: '', objects: new Map() };
  let behaviors: ReadonlyMap<string, Behavior> = new Map();
  const open: Server[] = [];
  const sockets = new Set<Socket>();

  /** Connections that no request has come over yet, by the port of the other side. */
  const unused = new Map<number, Recorded>();

  /** A connection is worth a record where it stays without a request: a handshake failed. */
  function connected(host: string, port: number | undefined): void {
    const record = connection(host);
    records.push(record);
    if (port !== undefined) unused.set(port, record);
  }

  /** @param name instead of the address; an empty one where a proxy tells who was meant */
  async function listen(server: Server, address: string, name = address): Promise<string> {
    let host = '';
    server.on('connection', (socket: Socket) => {
      if (name !== '') connected(host, socket.remotePort);
      sockets.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    });
    server.on('tlsClientError', () => undefined);
    open.push(server);
    server.listen(0, address);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
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
    gone: await nobody('127.0.0.8'),
    ...names,
  };
  const behind = new Map<string, string>();
  const publicAddress = await secure(publicCa, '127.0.0.9', { dns: publicNames });
  for (const name of publicNames) behind.set(`${name}:443`, publicAddress);
  behind.set('origin.example:5000', publicAddress);
  behind.set(
    `${names.mirrorPrivate}:443`,
    await secure(privateCa, '127.0.0.9', { dns: [names.mirrorPrivate] }),
  );
  behind.set(`${names.plainName}:443`, await plain('127.0.0.9', ''));
  const proxy = await listen(
    createProxy({ behind, answer: handler('http'), sockets, connected }),
    '127.0.0.10',
    '',
  );

  return {
    places,
    publicCa: publicCa.cert,
    privateCa: privateCa.cert,
    client: await clientCa.issue({ cn: 'node', client: true }),
    env: { HTTPS_PROXY: `http://${proxy}`, HTTP_PROXY: `http://${proxy}` },
    records,
    arrange: (newStock, newBehaviors) => {
      stock = newStock;
      behaviors = newBehaviors;
      records.length = 0;
    },
    clear: () => {
      records.length = 0;
    },
    close: async () => {
      const closed = open.map((server) => once(server, 'close'));
      for (const server of open) server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

/** An address where nobody listens: a port that was free a moment ago. */
async function nobody(address: string): Promise<string> {
  const server = createTcpServer().listen(0, address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `${address}:${port}`;
}

/** A forward proxy: CONNECT to who stands behind a name, plain requests answered as that name would. */
function createProxy({
  behind,
  answer,
  sockets,
  connected,
}: {
  readonly behind: ReadonlyMap<string, string>;
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  readonly sockets: Set<Socket>;
  readonly connected: (host: string, port: number | undefined) => void;
}): Server {
  const server = createHttpServer((request, response) => {
    const url = URL.parse(request.url ?? '');
    if (!url || !(behind.has(`${url.hostname}:443`) || behind.has(url.host))) {
      response.writeHead(502).end();
      return;
    }
    request.url = `${url.pathname}${url.search}`;
    answer(request, response);
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
