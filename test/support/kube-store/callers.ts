/**
 * Tokens of service accounts (TokenRequest, TokenReview), access reviews, and the proxy of Services, which
 * forwards requests without the caller's Authorization and verifies no certificate.
 */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { StoreRequest } from './faults.ts';
import type { Target } from './paths.ts';
import { statusAnswer, type Answer } from './writes.ts';

export class CallersOfStore {
  readonly #tokens = new Map<string, { readonly username: string; readonly audiences: readonly string[] }>();
  /** `username verb group/resource namespace` */
  readonly #grants = new Set<string>();
  /** By `namespace/scheme:service:port`. */
  readonly #services = new Map<string, string>();

  /** Grants permissions, like a RoleBinding. */
  grant(username: string, verb: string, resource: string, namespace: string): void {
    this.#grants.add([username, verb, resource, namespace].join(' '));
  }

  /** @param service `namespace/https:name:port` */
  serve(service: string, url: string): void {
    this.#services.set(service, url);
  }

  /** A token as if signed by the API server. */
  issue(username: string, audiences: readonly string[]): string {
    const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${encoded({ alg: 'RS256' })}.${encoded({ aud: audiences, sub: username })}.${randomUUID()}`;
    this.#tokens.set(token, { username, audiences });
    return token;
  }

  revoke(token: string): void {
    this.#tokens.delete(token);
  }

  /** @returns `undefined` for every other request */
  answer(at: Target, { method, json }: StoreRequest): Answer | undefined {
    if (method !== 'POST') return undefined;
    const { spec } = (json ?? {}) as { readonly spec?: Readonly<Record<string, unknown>> };
    if (at.resource === 'serviceaccounts' && at.subresource === 'token') {
      const token = this.issue(
        `system:serviceaccount:${at.namespace}:${at.name}`,
        spec?.['audiences'] as readonly string[],
      );
      return { status: 201, body: { kind: 'TokenRequest', status: { token } } };
    }
    if (at.resource === 'tokenreviews') return { status: 201, body: { status: this.#review(spec) } };
    if (at.resource !== 'subjectaccessreviews') return undefined;
    const { user, resourceAttributes } = spec ?? {};
    const { namespace, verb, group, resource } = (resourceAttributes ?? {}) as Record<string, string>;
    const grant = [user, verb, `${group}/${resource}`, namespace].join(' ');
    return { status: 201, body: { status: { allowed: this.#grants.has(grant) } } };
  }

  #review(spec: Readonly<Record<string, unknown>> = {}): object {
    const known = this.#tokens.get(spec['token'] as string);
    const audiences = (spec['audiences'] as readonly string[]).filter((each) =>
      known?.audiences.includes(each),
    );
    if (known === undefined || audiences.length === 0)
      return { authenticated: false, error: 'invalid token' };
    const groups = ['system:serviceaccounts', 'system:authenticated'];
    return { authenticated: true, audiences, user: { username: known.username, uid: 'u', groups } };
  }

  /** Forwards a request for a Service. @returns whether it was one */
  forward(at: Target, { method, contentType, body }: StoreRequest, response: ServerResponse): boolean {
    if (at.resource !== 'services' || !at.subresource.startsWith('proxy/')) return false;
    const url = this.#services.get(`${at.namespace}/${at.name}`);
    const fail = (message: string): void => {
      const answer = statusAnswer(503, 'ServiceUnavailable', message);
      response
        .writeHead(answer.status, { 'content-type': 'application/json' })
        .end(JSON.stringify(answer.body));
    };
    if (url === undefined) {
      fail(`no endpoints available for service ${JSON.stringify(at.name)}`);
      return true;
    }
    const headers = { 'content-type': contentType, 'content-length': Buffer.byteLength(body) };
    const options = { method, headers, rejectUnauthorized: false, agent: false };
    httpsRequest(url + at.subresource.slice('proxy'.length), options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    })
      .on('error', (error) => fail(error.message))
      .end(body);
    return true;
  }
}
