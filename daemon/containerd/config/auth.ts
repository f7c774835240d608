/**
 * Credentials in containerd's format: `registry.configs."<host>".auth` of config.toml, and the auth object of the CRI (containerd
 * `internal/cri/server/images/image_pull.go` ParseAuth).
 */
import { Base64Error, decodeBase64 } from '../../../src/credentials/docker/go-encoding.ts';
import type { Credential } from '../../../src/credentials/credential.ts';
import { reveal, secret, type Secret } from '../../../src/telemetry/secret.ts';
import { parseGoUrl } from '../../go/url.ts';
import { InvalidConfig } from '../config-error.ts';

/** An empty text means "not set". */
export interface Auth {
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  /** base64 of `username:password`. */
  readonly auth?: Secret | undefined;
  readonly identityToken?: Secret | undefined;
  /** CRI only: URL of the only host that may receive the credential. */
  readonly serverAddress?: string | undefined;
}

/**
 * The credential for a host. A user name takes precedence over an identity token (sent as a password without a user name), and
 * that over `auth`.
 * @param host of the request, with its port
 * @returns undefined for anonymous
 * @throws InvalidConfig
 */
export function parseAuth(auth: Auth, host: string): Credential | undefined {
  const { username = '', password, identityToken, serverAddress = '' } = auth;
  if (serverAddress !== '') {
    const url = parseGoUrl(serverAddress);
    if (!url) throw new InvalidConfig('invalid', 'the server address is not a URL');
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
    if (colon < 0) throw new InvalidConfig('invalid', 'auth must be the base64 of username:password');
    // containerd decodes into a buffer that may be longer than the text, and trims the NUL bytes.
    const password = decoded.slice(colon + 1).replace(/^\0+|\0+$/g, '');
    return { username: decoded.slice(0, colon), password: secret(password) };
  } catch (error) {
    if (error instanceof Base64Error) throw new InvalidConfig('invalid', 'auth is not base64 with padding');
    throw error;
  }
}
