/**
 * Docker credential files as the kubelet reads them (kubernetes pkg/credentialprovider/config.go):
 * `config.json`, where only the object `auths` counts, and the older `.dockercfg`, which is that object
 * itself. Credential helpers and tokens (`identitytoken`, `registrytoken`) are ignored. One malformed entry
 * makes the whole document malformed.
 */
import { members, readString } from '../../http/json-text.ts';
import { parseJson } from '../../http/json.ts';
import type { SecretOwner } from '../../telemetry/scrub.ts';
import { secret } from '../../telemetry/secret.ts';
import type { Credential } from '../credential.ts';
import { indexKey } from '../keyring/key.ts';

export type DockerConfigFormat = 'config.json' | 'dockercfg';

/** The fault of a document, for people; quotes no value. */
export class DockerConfigError extends Error {
  override readonly name = 'DockerConfigError';
}

/** The document has more entries than the reader takes. They were not read, so it may be malformed too. */
export class TooManyEntries extends DockerConfigError {}

/**
 * Its entries by key. An empty entry is an empty credential.
 * @param content invalid UTF-8 is replaced inside strings, as in Go
 * @param owner of the passwords
 * @throws DockerConfigError, TooManyEntries
 */
export function parseDockerConfig(
  content: Uint8Array,
  format: DockerConfigFormat,
  { maxEntries, owner }: { readonly maxEntries?: number; readonly owner?: SecretOwner } = {},
): ReadonlyMap<string, Credential> {
  const text = jsonText(content);
  const read = (value: string, key: string) =>
    parseDockerConfigEntry(value, `entry ${indexKey(key) ?? '(not a registry)'}`, owner);
  if (format === 'dockercfg') return addMembers(new Map(), text, 'auths', read, maxEntries);
  const auths = mapField(text, 'auths', read, maxEntries);
  mapField(text, 'httpheaders', (value, _, name) => stringOr(value, '', `${name}: a value`));
  return auths;
}

/** The text of a valid JSON document. @throws DockerConfigError */
export function jsonText(content: Uint8Array): string {
  // Keeps a byte order mark, which is not JSON: Go rejects such a file too.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(content);
  if (parseJson(text) === undefined) throw new DockerConfigError('is not valid JSON');
  return text;
}

/** @param text valid JSON @param name of the entry, for the error @throws DockerConfigError */
export function parseDockerConfigEntry(text: string, name: string, owner?: SecretOwner): Credential {
  const names = ['username', 'password', 'email', 'auth'] as const;
  const { username, password, auth } = stringFields(text, name, names);
  if (auth === '') return { username, password: secret(password, owner) };
  try {
    return decodeAuthField(auth, owner);
  } catch (error) {
    if (!(error instanceof DockerConfigError)) throw error;
    throw new DockerConfigError(`${name}: auth: ${error.message}`);
  }
}

/**
 * Decodes the field `auth`: padded base64 if it ends with `=`, else unpadded, of `username:password`. Either
 * part may be empty; trailing NUL bytes stay.
 * @throws DockerConfigError
 */
export function decodeAuthField(auth: string, owner?: SecretOwner): Credential {
  const bytes = decodeBase64(auth, auth.trimEnd().endsWith('=') ? 'padded' : 'unpadded');
  // Other bytes than UTF-8 are replaced: the kubelet cannot pass them to the runtime either.
  const text = bytes.toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) {
    throw new DockerConfigError('unable to parse auth field, must be formatted as base64(username:password)');
  }
  return { username: text.slice(0, colon), password: secret(text.slice(colon + 1), owner) };
}

/**
 * A field of a Go struct that is a map. As in Go, a second one adds to the first, and null empties it.
 * @param field in lower case
 * @param read gets a value, its key and the name of the field as written
 * @throws DockerConfigError, TooManyEntries
 */
export function mapField<T>(
  text: string,
  field: string,
  read: (value: string, key: string, name: string) => T,
  maxEntries?: number,
): Map<string, T> {
  const found = new Map<string, T>();
  for (const [name, value] of objectMembers(text, 'the document')) {
    if (!namesField(name, field)) continue;
    if (value === 'null') found.clear();
    addMembers(found, value, name, read, maxEntries);
  }
  return found;
}

/** @throws DockerConfigError, TooManyEntries */
export function addMembers<T>(
  found: Map<string, T>,
  text: string,
  name: string,
  read: (value: string, key: string, name: string) => T,
  maxEntries = Number.POSITIVE_INFINITY,
): Map<string, T> {
  const added = objectMembers(text, name);
  if (found.size + added.length > maxEntries) throw new TooManyEntries(`has more than ${maxEntries} entries`);
  for (const [key, value] of added) found.set(key, read(value, key, name));
  return found;
}

/** The members of an object, none of null. @param name for the error @throws DockerConfigError */
export function objectMembers(text: string, name: string): readonly (readonly [string, string])[] {
  if (text.trim() === 'null') return [];
  try {
    const found = members(text);
    if (found) return found;
  } catch (error) {
    if (error instanceof RangeError) throw new DockerConfigError('is nested too deeply');
    throw error;
  }
  throw new DockerConfigError(`${name} is not an object`);
}

/** String fields of a Go struct; empty: it is not there. @throws DockerConfigError */
export function stringFields<const Field extends string>(
  text: string,
  name: string,
  fields: readonly Field[],
): Readonly<Record<Field, string>> {
  const found = Object.fromEntries(fields.map((field) => [field, ''])) as Record<Field, string>;
  for (const [member, value] of objectMembers(text, name)) {
    for (const field of fields)
      if (namesField(member, field)) found[field] = stringOr(value, found[field], `${name}: ${field}`);
  }
  return found;
}

/** A string, or the previous value for null. @throws DockerConfigError */
export function stringOr(text: string, before: string, name: string): string {
  if (text === 'null') return before;
  const value = readString(text);
  if (value === undefined) throw new DockerConfigError(`${name} is not a string`);
  return value;
}

/**
 * Whether a member's name means a field, as encoding/json folds names: ASCII case, and the two letters
 * outside ASCII whose simple case folding is an ASCII letter (U+017F for s, U+212A for k).
 * @param field in lower case
 */
export function namesField(name: string, field: string): boolean {
  return name.replaceAll('\u017f', 's').toLowerCase() === field;
}

export class Base64Error extends DockerConfigError {
  constructor() {
    super('illegal base64 data');
  }
}

/**
 * Decodes base64 as Go's encoding/base64: line breaks are skipped anywhere; other characters outside the standard
 * alphabet and wrong padding are errors. (`Buffer.from` accepts nearly everything.)
 * @param padding whether `=` must fill the last group, or must not
 * @throws Base64Error
 */
export function decodeBase64(text: string, padding: 'padded' | 'unpadded'): Buffer {
  const [, letters, fill = ''] = /^([A-Za-z0-9+/]*)(={0,2})$/.exec(text.replaceAll(/[\r\n]/g, '')) ?? [];
  const rest = (letters?.length ?? 1) % 4;
  const missing = padding === 'padded' ? (4 - rest) % 4 : 0;
  if (rest === 1 || fill.length !== missing) throw new Base64Error();
  return Buffer.from(text, 'base64');
}

/**
 * `auth` as container runtimes read it: padded base64 of `username:password`, without NUL bytes around the
 * password. @returns undefined without a colon @throws Base64Error
 */
export function decodeLogin(
  auth: string,
): { readonly username: string; readonly password: string } | undefined {
  const text = decodeBase64(auth, 'padded').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) return undefined;
  return { username: text.slice(0, colon), password: text.slice(colon + 1).replace(/^\0+|(?<!\0)\0+$/g, '') };
}
