/**
 * A token server for the real registry: checks Basic credentials (none for public repositories) and signs a
 * JWT that names the repositories. Rules: distribution docs/content/spec/auth/{token,jwt,oauth}.md. The
 * registry has the signing certificate in `rootcertbundle`, the token in `x5c`.
 */
import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { PemPair } from '../../support/certificates.ts';
import { listen } from '../../support/listen.ts';

export async function startTokenServer(options: {
  readonly tls: PemPair;
  readonly signer: PemPair;
  readonly issuer: string;
  readonly service: string;
  readonly users: Readonly<Record<string, string>>;
  /** Repositories below this path need no user. */
  readonly publicPrefix: string;
}) {
  const key = createPrivateKey(options.signer.key);
  const x5c = [new X509Certificate(options.signer.cert).raw.toString('base64')];

  function token(access: readonly object[], subject: string): string {
    const now = Math.floor(Date.now() / 1000);
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const body = `${part({ typ: 'JWT', alg: 'ES256', x5c })}.${part({
      iss: options.issuer,
      sub: subject,
      aud: options.service,
      exp: now + 300,
      nbf: now - 10,
      iat: now,
      jti: String(now),
      access,
    })}`;
    return `${body}.${sign('sha256', Buffer.from(body), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  }

  function granted(scopes: readonly string[], user: string | undefined): object[] {
    return scopes.flatMap((scope) => {
      const [type, name, actions] = scope.split(':');
      if (type !== 'repository' || name === undefined || actions === undefined) return [];
      if (user !== undefined) return [{ type, name, actions: actions.split(',') }];
      return name.startsWith(options.publicPrefix) ? [{ type, name, actions: ['pull'] }] : [];
    });
  }

  const server = createServer({ cert: options.tls.cert, key: options.tls.key }, (request, response) => {
    const url = new URL(request.url ?? '/', 'https://token');
    // Only GET with Basic works: clients that try OAuth2 by POST first must retry.
    if (request.method !== 'GET') {
      response.writeHead(405).end();
      return;
    }
    const given = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    const [user, ...password] = given === undefined ? [] : Buffer.from(given, 'base64').toString().split(':');
    if (user !== undefined && options.users[user] !== password.join(':')) {
      response.writeHead(401).end();
      return;
    }
    const access = granted(
      url.searchParams.getAll('scope').flatMap((scope) => scope.split(' ')),
      user,
    );
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ token: token(access, user ?? ''), expires_in: 300 }));
  });
  return {
    realm: `https://127.0.0.1:${await listen(server)}/token`,
    close: async () => {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
