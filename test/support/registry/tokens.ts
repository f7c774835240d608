/**
 * The token server of the test registry (Docker token protocol: GET with Basic, POST in the OAuth2 form).
 * Tokens have numbers. Each one has its own scope: it is valid for one registry and user only.
 */
export interface IssuerOptions {
  readonly users?: Readonly<Record<string, string>>;
  /**
   * Whether a user may pull; `undefined` is anonymous. Default: users may pull everything, anonymous nothing.
   */
  readonly access?: (user: string | undefined, repository: string) => boolean;
  /** `expires_in` of the response. Omitted if `undefined` (the protocol's default: 60 s). */
  readonly lifetimeSeconds?: number;
}

export interface TokenRequest {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly form: URLSearchParams;
  readonly basic?: { readonly user: string; readonly password: string };
}

export type TokenIssuer = ReturnType<typeof createIssuer>;

interface Granted {
  readonly user: string;
  readonly repositories: ReadonlySet<string>;
  readonly until: number;
}

let issuers = 0;

export function createIssuer(options: IssuerOptions = {}) {
  const tokens = new Map<string, Granted>();
  const access = options.access ?? ((user) => user !== undefined);
  const name = `issuer${++issuers}`;
  let issued = 0;

  function callerOf(request: TokenRequest): { user?: string } | 'refused' {
    let user = request.basic?.user;
    let password = request.basic?.password;
    if (request.method === 'POST') {
      const grant = request.form.get('grant_type');
      if (grant === 'refresh_token') return 'refused';
      user = request.form.get('username') ?? undefined;
      password = request.form.get('password') ?? undefined;
    }
    if (user === undefined) return {};
    return options.users?.[user] === password && password !== undefined ? { user } : 'refused';
  }

  return {
    answer: (request: TokenRequest): { status: number; body: Record<string, unknown> } => {
      const caller = callerOf(request);
      if (caller === 'refused') return { status: 401, body: { errors: [{ code: 'UNAUTHORIZED' }] } };
      const scopes =
        request.method === 'POST'
          ? (request.form.get('scope') ?? '').split(' ')
          : request.query.getAll('scope').flatMap((scope) => scope.split(' '));
      const repositories = new Set<string>();
      for (const scope of scopes) {
        const found = /^repository:(.+):([a-z,*]+)$/.exec(scope);
        const repository = found?.[1];
        if (repository !== undefined && access(caller.user, repository)) repositories.add(repository);
      }
      issued += 1;
      const token = `token-${name}-${issued}`;
      const lifetime = options.lifetimeSeconds ?? 60;
      tokens.set(token, { user: caller.user ?? '', repositories, until: Date.now() + lifetime * 1000 });
      return {
        status: 200,
        body: {
          token,
          access_token: token,
          ...(options.lifetimeSeconds === undefined ? {} : { expires_in: options.lifetimeSeconds }),
        },
      };
    },
    /** Whether a token grants a pull. `unknown` for an expired token too. */
    check: (token: string, repository: string): 'granted' | 'unknown' | 'insufficient' => {
      const granted = tokens.get(token);
      if (!granted || Date.now() >= granted.until) return 'unknown';
      return granted.repositories.has(repository) ? 'granted' : 'insufficient';
    },
    /** The user of a token; `''` for an anonymous one. */
    userOf: (token: string): string | undefined => tokens.get(token)?.user,
    /** Number of tokens issued so far. */
    get issued(): number {
      return issued;
    },
    revoke: (): void => tokens.clear(),
  };
}
