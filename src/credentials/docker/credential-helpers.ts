/**
 * The parts of a person's docker `config.json` that the kubelet ignores and `docker pull` uses: credential
 * helpers and identity tokens (docker/cli cli/config/configfile/file.go), and the answers of helpers
 * (docker/docker-credential-helpers).
 */
import { isUtf8 } from 'node:buffer';
import { parseJson } from '../../http/json.ts';
import { isRecord } from '../../names/values.ts';
import { secret } from '../../telemetry/secret.ts';
import type { Credential } from '../credential.ts';
import { indexKey } from '../keyring/key.ts';
import { isDockerHub } from '../keyring/keyring.ts';

export type HelperConfig = ReturnType<typeof parseHelperConfig>;

export type ChosenHelper = NonNullable<ReturnType<typeof helperOf>>;

/** The name of Docker Hub in `docker login`. */
const dockerHubServer = 'https://index.docker.io/v1/';
const dockerHubNames = [dockerHubServer, 'index.docker.io', 'docker.io'];

/** A part of the name of a program, which is searched in PATH: never a path. */
export function isHelperName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name);
}

/** A `config.json` that cannot be used; quotes no value. */
export class HelperConfigError extends Error {
  override readonly name = 'HelperConfigError';
}

/** @throws HelperConfigError */
export function parseHelperConfig(content: Uint8Array) {
  const document = parse(content);
  if (!isRecord(document)) throw new HelperConfigError('is not a JSON object');
  const { auths, credHelpers, credsStore } = document;
  const problems: string[] = [];
  const named = (name: unknown, where: string): string | undefined => {
    if (name === undefined || name === null || name === '') return undefined;
    if (typeof name === 'string' && isHelperName(name)) return name;
    problems.push(`${where} is not the name of a credential helper`);
    return undefined;
  };
  const helpers = new Map<string, string>();
  for (const [server, name] of Object.entries(isRecord(credHelpers) ? credHelpers : {})) {
    const found = named(name, 'a value of credHelpers');
    const key = indexKey(server);
    if (found !== undefined && key !== undefined) helpers.set(key, found);
  }
  return {
    /** `credHelpers`: name of the helper by registry. */
    helpers,
    /** `credsStore`: name of the helper of all other registries. */
    store: named(credsStore, 'credsStore'),
    /** `identitytoken` by key of `auths`. */
    tokens: tokensOf(auths),
    /** Entries that cannot be used. */
    problems,
  };
}

function tokensOf(auths: unknown): ReadonlyMap<string, Credential> {
  const found = new Map<string, Credential>();
  for (const [server, entry] of Object.entries(isRecord(auths) ? auths : {})) {
    const token = isRecord(entry) ? entry['identitytoken'] : undefined;
    if (typeof token === 'string' && token !== '') found.set(server, identityToken(token));
  }
  return found;
}

/** @param repository normalized @returns undefined if its registry has no helper; `server` is its argument */
export function helperOf({ helpers, store }: HelperConfig, repository: string) {
  const [domain = ''] = repository.split('/', 1);
  const isHub = isDockerHub(repository);
  const keys = isHub ? dockerHubNames.map((name) => indexKey(name) ?? name) : [domain];
  const key = keys.find((each) => helpers.has(each));
  const name = (key === undefined ? undefined : helpers.get(key)) ?? store;
  return name === undefined ? undefined : { name, server: isHub ? dockerHubServer : domain };
}

/** A user name of helpers: the secret is an identity token. */
const tokenUser = '<token>';

/** What `docker-credential-NAME get` prints if it has a credential. @throws HelperConfigError */
export function parseHelperAnswer(content: Uint8Array): Credential {
  const answer = parse(content);
  if (!isRecord(answer)) throw new HelperConfigError('printed no JSON object');
  const { Username: username, Secret: text } = answer;
  if (typeof username !== 'string' || typeof text !== 'string' || text === '') {
    throw new HelperConfigError('printed no Username and Secret');
  }
  return username === tokenUser ? identityToken(text) : { username, password: secret(text) };
}

/** What helpers print if they have no credential (docker-credential-helpers credentials/error.go). */
export function saysNotFound(stdout: string): boolean {
  return /^credentials not found in native keychain\s*$/.test(stdout);
}

function identityToken(text: string): Credential {
  return { username: '', password: secret(text), isIdentityToken: true };
}

function parse(content: Uint8Array): unknown {
  if (!isUtf8(content)) throw new HelperConfigError('is not UTF-8');
  const document = parseJson(new TextDecoder().decode(content));
  if (document === undefined) throw new HelperConfigError('is not valid JSON');
  return document;
}
