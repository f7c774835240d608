/** HTTPS through a proxy: `CONNECT host:port` (RFC 9110, section 9.3.6), then TLS with the target inside the tunnel. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { reveal } from '../telemetry/secret.ts';
import type { Proxy } from './proxy.ts';
import { TransportError, transportError } from './transport-error.ts';

/** The same bound as for any answer's header block. */
const maxHeaderBytes = 16 * 1024;

export interface TunnelOptions {
  readonly proxy: Proxy;
  readonly host: string;
  readonly port: number;
  /** Trust for the proxy itself, where it is asked by https. */
  readonly proxyTls: ConnectionOptions;
  /** For the target; `servername` included. */
  readonly targetTls: ConnectionOptions;
  /** Ends everything: the asker's patience and the time limit for dialing. */
  readonly signal: AbortSignal;
}

/** Of https, which URLs leave out. */
const defaultPort = 443;

/**
 * Opens a tunnel and speaks TLS through it.
 * @throws TransportError; the socket is closed then
 */
export async function openTunnel(options: TunnelOptions): Promise<TLSSocket> {
  const { proxy, signal } = options;
  const socket = dialProxy(options);
  const stop = (): void => {
    socket.destroy(new TransportError('dial-timeout', proxy.url.host, 'the proxy did not answer in time'));
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    await once(socket, proxy.url.protocol === 'https:' ? 'secureConnect' : 'connect');
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    const authority = `${host}:${options.port}`;
    const authorization = proxy.authorization
      ? `Proxy-Authorization: ${reveal(proxy.authorization)}\r\n`
      : '';
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`);
    await readAgreement(socket, proxy);
    const secured = connectTls({ ...options.targetTls, socket });
    try {
      await once(secured, 'secureConnect');
    } catch (error) {
      // Written as in the URL that was asked, so that whoever handles it knows it for its own.
      throw transportError(error, options.port === defaultPort ? host : authority);
    }
    return secured;
  } catch (error) {
    socket.destroy();
    if (error instanceof TransportError) throw error;
    throw new TransportError('proxy', proxy.url.host, `the proxy ${proxy.url.host} cannot be reached`, error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function dialProxy({ proxy, proxyTls }: TunnelOptions): Socket {
  const { hostname, protocol, port } = proxy.url;
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'https:')
    return connectTls({ ...proxyTls, host, port: Number(port || 443), servername: host });
  return connectTcp({ host, port: Number(port || 80) });
}

async function readAgreement(socket: Socket, proxy: Proxy): Promise<void> {
  let head = '';
  for (;;) {
    const chunk = await nextChunk(socket, proxy);
    head += chunk.toString('latin1');
    const end = head.indexOf('\r\n\r\n');
    if (end === -1 && head.length <= maxHeaderBytes) continue;
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
    if (status?.startsWith('2') === true && end !== -1) return;
    const said = status === undefined || end === -1 ? 'something that is no HTTP answer' : status;
    throw new TransportError('proxy', proxy.url.host, `the proxy ${proxy.url.host} answered ${said}`);
  }
}

async function nextChunk(socket: Socket, proxy: Proxy): Promise<Buffer> {
  for (;;) {
    const chunk = socket.read() as Buffer | null;
    if (chunk !== null) return chunk;
    if (socket.readableEnded || socket.destroyed) break;
    await Promise.race([once(socket, 'readable'), once(socket, 'end')]);
  }
  throw new TransportError('proxy', proxy.url.host, `the proxy ${proxy.url.host} closed the connection`);
}
