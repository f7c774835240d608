/**
 * A pod's pull credentials on their way from the webhook to an agent: `auths` of `POST /v1/facts`, by index
 * key, each with one credential or a list of them in order of use. Only the credentials that match the
 * requested images are sent.
 */
import * as v from 'valibot';
import { isRecord } from '../names/values.ts';
import { secret, reveal } from '../telemetry/secret.ts';
import type { CredentialSource, MatchedCredential } from './credential.ts';
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

const field = v.pipe(v.string(), v.maxLength(maxFieldLength));
const credential = v.pipe(
  v.custom<object>(isRecord, 'must be an object'),
  v.strictObject({ username: field, password: field }),
);
const isKey = (key: string): boolean => key.length <= maxKeyLength && parsePattern(key) !== undefined;

/** The schema of `auths`, as a source. */
export const auths = v.pipe(
  v.custom<object>(isRecord, 'must be an object'),
  v.transform((all) =>
    Object.entries(all).flatMap(([key, entry]) =>
      [entry as unknown].flat().map((item) => ({ key, credential: item })),
    ),
  ),
  v.maxLength(maxCredentials),
  v.array(v.object({ key: v.pipe(v.string(), v.check(isKey, 'must be a registry')), credential })),
  v.transform((entries): Pick<CredentialSource, 'lookup'> => {
    const held = entries.map(({ key, credential: { username, password } }) => {
      return { key, credential: { username, password: secret(password, 'others') }, origin: 'the pod' };
    });
    const keyring = createKeyring('pull-secret', held);
    return { lookup: (repository) => Promise.resolve(keyring.lookup(repository)) };
  }),
);
