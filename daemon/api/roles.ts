/**
 * The role of a client. TLS refuses clients without a certificate of the cluster's archwright authority. That authority also signs the
 * agents' own certificates, so each request needs a role too.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../src/async/clock.ts';

/** Roles by common name of the subject. */
const roleNames = { 'archwright-webhook': 'webhook', 'archwright-controller': 'controller' } as const;
export type Role = (typeof roleNames)[keyof typeof roleNames];

/** RFC 5280, 4.2.1.12: id-kp-clientAuth. */
const clientAuth = '1.3.6.1.5.5.7.3.2';

export type RoleCheck =
  | { readonly role: Role }
  /** Why there is none, for log and answer. */
  | { readonly refused: string };

interface Client {
  readonly check: RoleCheck;
  /** Validity of its certificate, milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
}

/** Parsing a certificate costs more than answering from memory, and the client of a connection does not change. */
const clients = new WeakMap<Socket, Client>();

/**
 * The role of a connection's client. Dates are checked for each request, because TLS checks them only in the handshake.
 */
export function roleOf(socket: Socket | TLSSocket, clock: Clock): RoleCheck {
  let client = clients.get(socket);
  if (!client) {
    client = clientOf(socket);
    clients.set(socket, client);
  }
  if ('refused' in client.check) return client.check;
  const now = clock.now();
  if (client.from <= now && now <= client.to) return client.check;
  return { refused: 'the client certificate is expired or not valid yet' };
}

function clientOf(socket: Socket | TLSSocket): Client {
  if (!('getPeerCertificate' in socket) || !socket.authorized) {
    return refused('the connection has no verified client certificate');
  }
  // Contrary to the type, an ended socket has no certificate.
  const certificate = socket.getPeerCertificate() as Partial<ReturnType<TLSSocket['getPeerCertificate']>>;
  const commonName = certificate.subject?.CN;
  if (typeof commonName !== 'string' || !isRoleName(commonName)) {
    return refused('the client certificate has no role that may use this API');
  }
  if (!certificate.ext_key_usage?.includes(clientAuth)) {
    return refused('the client certificate is not for client authentication');
  }
  return {
    check: { role: roleNames[commonName] },
    from: Date.parse(certificate.valid_from ?? ''),
    to: Date.parse(certificate.valid_to ?? ''),
  };
}

function refused(why: string): Client {
  return { check: { refused: why }, from: Number.NaN, to: Number.NaN };
}

function isRoleName(name: string): name is keyof typeof roleNames {
  return Object.hasOwn(roleNames, name);
}
