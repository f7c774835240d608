/**
 * A pod's pull credentials on their way from the webhook to an agent: `auths` of `POST /v1/facts`, by index
 * key, each with one credential or a list of them in order of use. Only the credentials that match the
 * requested images are sent.
 */
import { asObject, type JsonObject } from '../http/json.ts';
import { secret, reveal } from '../telemetry/secret.ts';
import {
  CredentialError,
  type CredentialSource,
  type MatchedCredential,
  type HeldCredential,
} from './credential.ts';
import { contentId } from './identity.ts';
import { createKeyring } from './keyring/keyring.ts';
import { parsePattern } from './keyring/key.ts';

interface WireCredential {
  readonly username: string;
  readonly password: string;
}
type WireAuths = Readonly<Record<string, readonly WireCredential[]>>;

/** Far more than the credentials that match the images of one pod. */
const maxCredentials = 1000;
/** A domain and a repository path may have 255 characters each. */
const maxKeyLength = 1024;
/** Clouds issue signed tokens as passwords; the longest seen have some 16 KiB. */
const maxFieldLength = 64 * 1024;

/**
 * The wire form of matches from pull secrets; the agent has its own copy of all other sources. Holds
 * passwords in clear.
 * @param matched for the images of one pod, best first
 */
export function toAuths(matched: readonly MatchedCredential[]): WireAuths {
  const auths = new Map<string, Map<string, WireCredential>>();
  for (const { source, key, id, credential } of matched) {
    if (source !== 'pull-secret') continue;
    const under = auths.get(key) ?? new Map<string, WireCredential>();
    if (!under.has(id)) {
      under.set(id, { username: credential.username, password: reveal(credential.password) });
    }
    auths.set(key, under);
  }
  return Object.fromEntries([...auths].map(([key, under]) => [key, [...under.values()]]));
}

/** @param value parsed JSON; undefined: no credentials @throws CredentialError, which quotes nothing */
export function parseAuths(value: unknown): CredentialSource {
  const held: HeldCredential[] = [];
  for (const [key, entry] of Object.entries(object(value ?? {}, 'auths'))) {
    if (key.length > maxKeyLength || parsePattern(key) === undefined) {
      throw new CredentialError('auths', 'auths has a key that is not a registry');
    }
    const list: readonly unknown[] = Array.isArray(entry) ? entry : [entry];
    for (const item of list) {
      if (held.length === maxCredentials) {
        throw new CredentialError('auths', `auths has more than ${maxCredentials} credentials`);
      }
      held.push({ key, ...heldCredential(item) });
    }
  }
  const keyring = createKeyring('pull-secret', held);
  return {
    name: 'pull-secret',
    lookup: (repository) => Promise.resolve(keyring.lookup(repository)),
    problems: () => [],
    fingerprint: () => contentId(held),
  };
}

function heldCredential(value: unknown): Omit<HeldCredential, 'key'> {
  const { username, password, ...others } = object(value, 'a credential of auths');
  if (!isField(username) || !isField(password) || Object.keys(others).length > 0) {
    throw new CredentialError('auths', 'a credential of auths is not exactly {username, password}');
  }
  return { credential: { username, password: secret(password, 'others') }, origin: 'the pod' };
}

function isField(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxFieldLength;
}

function object(value: unknown, name: string): JsonObject {
  const found = asObject(value);
  if (found === undefined) throw new CredentialError('auths', `${name} is not an object`);
  return found;
}
