/**
 * Names for secrets that reveal nothing: identities of credentials inside this process, for cache keys, and
 * fingerprints of sources that are equal on every node with the same content.
 */
import { createHmac, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { hashOf } from '../names/hash.ts';
import { reveal } from '../telemetry/secret.ts';
import type { Credential, CredentialSourceName, HeldCredential } from './credential.ts';

/** Never leaves the process, so that an identity cannot be used to test guesses. */
const processKey = randomBytes(32);

/** 2^14 blocks of 1 KiB: 16 MiB and some 40 ms for each guess, within the memory an idle agent is allowed. */
const scryptCost = { N: 2 ** 14, r: 8 };

const derive = promisify<string, string, number, typeof scryptCost, Buffer>(scrypt);

/** Identities are equal for equal content, in this process only, and cheap. */
export function credentialId(credential: Credential): string {
  return keyed([credential.username, reveal(credential.password)]);
}

export function headersId(headers: Readonly<Record<string, string>>): string {
  return keyed(Object.entries(headers));
}

/** The content of a source that counts, in clear text: only for hashing. */
export function contentOf(held: readonly HeldCredential[]): string {
  const plain = held.map(({ key, credential }) => [key, credential.username, reveal(credential.password)]);
  return held.length === 0 ? '' : JSON.stringify(plain);
}

/**
 * Fingerprint of a source's content: equal on all nodes with the same credentials under the same keys in the
 * same order, wherever the files are. It crosses the network, so it is slow on purpose and covers all content
 * at once: to test one guess of a weak password, an attacker must know everything else and pay for scrypt. A
 * random salt is not possible, because nodes must agree without communication.
 */
export async function textFingerprint(source: CredentialSourceName, text: string): Promise<string> {
  if (text === '') return hashOf([source]);
  const digest = await derive(text, `archwright ${source}`, 32, scryptCost);
  return digest.toString('base64url');
}

function keyed(content: unknown): string {
  return createHmac('sha256', processKey).update(JSON.stringify(content)).digest('base64url');
}
