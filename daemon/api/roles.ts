/**
 * The role of a client. TLS refuses clients without a certificate of the cluster's archwright authority. That
 * authority also signs the agents' own certificates, so each request needs a role too.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../src/async/clock.ts';

/** Common names of the subjects that have a role. */
const roleNames: ReadonlySet<unknown> = new Set(['archwright-webhook', 'archwright-controller']);

/** RFC 5280, 4.2.1.12: id-kp-clientAuth. */
const clientAuth = '1.3.6.1.5.5.7.3.2';

/** Why the client has no role, or the validity of its certificate, milliseconds since 1970. */
type Client = string | { readonly from: number; readonly to: number };

/** Parsing a certificate costs more than an answer from memory; a connection keeps its client. */
const clients = new WeakMap<Socket, Client>();

/** Why a client has no role, if so. Dates are checked per request; TLS checks only in handshakes. */
export function roleProblem(socket: Socket | TLSSocket, clock: Clock): string | undefined {
  let client = clients.get(socket);
  if (!client) {
    client = clientOf(socket);
    clients.set(socket, client);
  }
  if (typeof client === 'string') return client;
  const now = clock.now();
  if (client.from <= now && now <= client.to) return undefined;
  return 'the client certificate is expired or not valid yet';
}

function clientOf(socket: Socket | TLSSocket): Client {
  if (!('getPeerCertificate' in socket) || !socket.authorized) {
    return 'the connection has no verified client certificate';
  }
  // Contrary to the type, an ended socket has no certificate.
  const certificate = socket.getPeerCertificate() as Partial<ReturnType<TLSSocket['getPeerCertificate']>>;
  if (!roleNames.has(certificate.subject?.CN)) {
    return 'the client certificate has no role that may use this API';
  }
  if (!certificate.ext_key_usage?.includes(clientAuth)) {
    return 'the client certificate is not for client authentication';
  }
  return { from: Date.parse(certificate.valid_from ?? ''), to: Date.parse(certificate.valid_to ?? '') };
}
