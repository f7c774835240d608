/**
 * An auth file of CRI-O: `auth.json` and docker's `config.json`, or the older `.dockercfg` (go.podman.io/image
 * pkg/docker/config/config.go). Not the kubelet's rules: only `auth`, `identitytoken` and `credHelpers` count,
 * keys have no wildcards, and one entry decides.
 */
import type { Credential } from '../../src/credentials/credential.ts';
import {
  type DockerConfigFormat,
  jsonText,
  objectMembers,
  stringFields,
  stringOr,
} from '../../src/credentials/docker/docker-config.ts';
import { decodeLogin, namesField } from '../../src/credentials/docker/go-encoding.ts';
import { secret, reveal, type Secret } from '../../src/telemetry/secret.ts';

interface AuthEntry {
  readonly auth: Secret;
  readonly identityToken: Secret;
}

export interface AuthFile {
  readonly entries: ReadonlyMap<string, AuthEntry>;
  /** `credHelpers`: the name of a helper by registry. */
  readonly helpers: ReadonlyMap<string, string>;
  readonly format: DockerConfigFormat;
}

/** @throws DockerConfigError */
export function parseAuthFile(content: Uint8Array, format: DockerConfigFormat): AuthFile {
  const text = jsonText(content);
  const entries = new Map<string, AuthEntry>();
  const helpers = new Map<string, string>();
  if (format === 'dockercfg') addEntries(text, entries);
  else {
    for (const [name, value] of objectMembers(text, 'the document')) {
      // As in Go, a second object adds to the first, and null empties it.
      if (namesField(name, 'auths')) {
        if (value === 'null') entries.clear();
        else addEntries(value, entries);
      } else if (namesField(name, 'credhelpers')) {
        if (value === 'null') helpers.clear();
        for (const [host, helper] of objectMembers(value, name))
          helpers.set(host, stringOr(helper, '', `${name}: a value`));
      }
    }
  }
  return { entries, helpers, format };
}

function addEntries(text: string, entries: Map<string, AuthEntry>): void {
  for (const [key, value] of objectMembers(text, 'auths')) {
    const { auth, identitytoken } = stringFields(value, 'an entry', ['auth', 'identitytoken']);
    entries.set(key, { auth: secret(auth), identityToken: secret(identitytoken) });
  }
}

/**
 * The credential for a repository, of the longest key that ends at a slash of it, else of a key that is the host
 * as a URL, such as `https://index.docker.io/v1/`. An entry without a credential decides too.
 * @param repository `host[:port]/path`
 * @throws Base64Error
 */
export function credentialIn(
  { entries, format }: AuthFile,
  repository: string,
): { readonly key: string; readonly credential: Credential } | undefined {
  const host = withoutHubNames(hostOf(repository));
  const key =
    keysFor(repository, format).find((each) => entries.has(each)) ??
    [...entries.keys()].find((each) => hostOfKey(each, format) === host);
  const entry = key === undefined ? undefined : entries.get(key);
  const credential = entry && credentialOf(entry);
  return key === undefined || !credential ? undefined : { key, credential };
}

export function hostOf(repository: string): string {
  return repository.split('/', 1)[0] ?? '';
}

/** The keys that count as written, in order. */
export function keysFor(repository: string, format: DockerConfigFormat): readonly string[] {
  const parts = repository.split('/');
  if (format === 'dockercfg') return parts.slice(0, 1);
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('/'));
}

/** The host that a key means besides its exact text. A key without scheme keeps its path. */
export function hostOfKey(key: string, format: DockerConfigFormat): string {
  const bare = key.replace(/^http:\/\//, '').replace(/^https:\/\//, '');
  return withoutHubNames(format === 'dockercfg' || bare !== key ? hostOf(bare) : bare);
}

function withoutHubNames(host: string): string {
  return host === 'docker.io' || host === 'registry-1.docker.io' ? 'index.docker.io' : host;
}

/** An identity token counts only beside an `auth`. @throws Base64Error */
function credentialOf({ auth, identityToken }: AuthEntry): Credential | undefined {
  const login = decodeLogin(reveal(auth));
  if (!login) return undefined;
  if (reveal(identityToken) !== '') return { username: '', password: identityToken, isIdentityToken: true };
  const { username, password } = login;
  return username === '' && password === '' ? undefined : { username, password: secret(password) };
}
