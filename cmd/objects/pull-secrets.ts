/** `--pull-secret FILE`: Secrets or a docker configuration. On a node, a broken one fails every pull. */
import { basename } from 'node:path';
import { CredentialError, type CredentialSource } from '../../src/credentials/credential.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import { FileError } from '../../src/files/read.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { isSecret, parseObjects, readText, storedSecret, type NamedText } from './documents.ts';
import { UsageError } from '../program/exit.ts';

const types = { config: 'kubernetes.io/dockerconfigjson', legacy: 'kubernetes.io/dockercfg' } as const;
const keys = { config: '.dockerconfigjson', legacy: '.dockercfg' } as const;

/** Any repository: the lookup makes the source read every credential. */
const anyRepository = 'docker.io/library/scratch';

/** @param files in the order of precedence @throws UsageError for a file without a usable pull secret */
export async function readPullSecretFiles(
  files: readonly string[],
  stdin: NodeJS.ReadableStream,
): Promise<CredentialSource> {
  const secrets: Secret[] = [];
  for (const file of files) secrets.push(...(await secretsIn(file, stdin)));
  const source = createPullSecretSource(secrets);
  try {
    await source.lookup(anyRepository);
  } catch (error) {
    if (error instanceof CredentialError) throw new UsageError(error.message);
    throw error;
  }
  return source;
}

async function secretsIn(file: string, stdin: NodeJS.ReadableStream): Promise<readonly Secret[]> {
  try {
    const text = await readText(file, stdin);
    const objects = parseObjects(text);
    const [first, ...more] = objects;
    if (first === undefined) throw new UsageError(`${text.file}: is empty`);
    if (more.length === 0 && isRecord(first.value) && !('kind' in first.value)) {
      return [bareConfig(text, first.value)];
    }
    return objects.map(({ value, line }) => pullSecret(value, `${text.file}:${line}`));
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof FileError)) throw error;
    throw new UsageError(`--pull-secret ${error.message}`);
  }
}

/** Wraps a docker configuration in a Secret, unparsed. */
function bareConfig({ file, text }: NamedText, content: JsonObject): Secret {
  const format = basename(file).endsWith('.dockercfg') || isLegacy(content) ? 'legacy' : 'config';
  const data = { [keys[format]]: Buffer.from(text).toString('base64') };
  return { kind: 'Secret', metadata: { name: file }, type: types[format], data };
}

/** A `.dockercfg` equals the `auths` of a `config.json`: each member is a login. */
function isLegacy(content: JsonObject): boolean {
  const entries = Object.values(content);
  const isLogin = (entry: unknown): boolean =>
    isRecord(entry) && ['auth', 'username', 'password'].some((key) => key in entry);
  return entries.length > 0 && entries.every(isLogin);
}

function pullSecret(value: unknown, where: string): Secret {
  if (!isSecret(value)) {
    throw new UsageError(`${where}: is neither a Secret nor a docker configuration`);
  }
  const secret = storedSecret(value);
  for (const format of ['config', 'legacy'] as const) {
    if (secret.type === types[format] && secret.data?.[keys[format]]) return secret;
  }
  throw new UsageError(
    `${where}: the kubelet would ignore this Secret; it takes type ${types.config} with the key ` +
      `${keys.config}, or ${types.legacy} with ${keys.legacy}`,
  );
}
