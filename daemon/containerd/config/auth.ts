/**
 * Credentials in the form in which containerd keeps them: `registry.configs."<host>".auth` of config.toml, and the auth object
 * of the CRI (containerd `internal/cri/server/images/image_pull.go` ParseAuth).
 */
import { Base64Error, decodeBase64 } from '../../../src/credentials/docker/base64.ts';
import type { Credential } from '../../../src/credentials/credential.ts';
import { reveal, secret, type Secret } from '../../../src/telemetry/secret.ts';
import { parseGoUrl } from '../hosts/go-url.ts';

/** Empty texts count as not set. */
export interface Auth {
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  /** base64 of `username:password`. */
  readonly auth?: Secret | undefined;
  readonly identityToken?: Secret | undefined;
  /** Only of the CRI: the URL of the only host that it is for. */
  readonly serverAddress?: string | undefined;
}

/** An auth object that containerd refuses. */
export class AuthInvalid extends Error {
  readonly code = 'malformed';
  readonly temporary = false;
  constructor(message: string) {
    super(message);
    this.name = 'AuthInvalid';
  }
}

/**
 * What is offered to a host. A user name goes before an identity token (which is a password without a user name), and that before `auth`.
 * @param host that is asked, with its port
 * @returns undefined for anonymous
 * @throws AuthInvalid
 */
export function parseAuth(auth: Auth, host: string): Credential | undefined {
  const { username = '', password, identityToken, serverAddress = '' } = auth;
  if (serverAddress !== '') {
    const url = parseGoUrl(serverAddress);
    if (!url) throw new AuthInvalid('the server address is no URL');
    if (url.host !== host) return undefined;
  }
  if (username !== '') return { username, password: password ?? secret('') };
  if (identityToken && reveal(identityToken) !== '') return { username: '', password: identityToken };
  const encoded = auth.auth ? reveal(auth.auth) : '';
  return encoded === '' ? undefined : decode(encoded);
}

function decode(encoded: string): Credential {
  try {
    const decoded = decodeBase64(encoded, 'padded').toString('utf8');
    const colon = decoded.indexOf(':');
    if (colon < 0) throw new AuthInvalid('auth must be the base64 of username:password');
    // containerd decodes into a buffer that may be longer than the text, and cuts off what is left of it.
    const password = decoded.slice(colon + 1).replace(/^\0+|\0+$/g, '');
    return { username: decoded.slice(0, colon), password: secret(password) };
  } catch (error) {
    if (error instanceof Base64Error) throw new AuthInvalid('auth is not base64 with padding');
    throw error;
  }
}
