/** Handlers of docker_config_auth.json, keyring_match.json and image_pull_secrets.json (see `handler.ts`). */
import {
  CredentialError,
  type Credential,
  type MatchedCredential,
} from '../../src/credentials/credential.ts';
import {
  decodeAuthField,
  DockerConfigError,
  parseDockerConfig,
  parseDockerConfigEntry,
  Base64Error,
} from '../../src/credentials/docker/docker-config.ts';
import { indexKey, matches, parsePattern } from '../../src/credentials/keyring/key.ts';
import { createKeyring, isDockerHub, combineSources } from '../../src/credentials/keyring/keyring.ts';
import { createPullSecretSource, pullSecretNames } from '../../src/credentials/sources/pull-secrets.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { isObject, itemOf, list, object, text, texts } from './input.ts';
import { encodeDockerConfigEntry } from './upstream/docker-config-entry.ts';

export const credentials: Handlers = {
  auth_field: (input) => {
    try {
      const { username, password } = decodeAuthField(text(input, 'auth'));
      return { ok: true, username, password: reveal(password) };
    } catch (error) {
      // Go's message has the position.
      if (!(error instanceof Base64Error)) throw error;
      return { ok: false, error: notCompared };
    }
  },

  entry: (input) => {
    try {
      return { ok: true, ...open(parseDockerConfigEntry(text(input, 'json'), 'the entry')) };
    } catch (error) {
      if (!(error instanceof DockerConfigError)) throw error;
      // The contents of an entry that upstream discards do not count.
      return {
        ok: false,
        error: notCompared,
        username: notCompared,
        password: notCompared,
        email: notCompared,
      };
    }
  },

  file: (input, { expected }) => {
    const format = text(input, 'format') === 'dockercfg' ? 'dockercfg' : 'config.json';
    try {
      const entries = parseDockerConfig(Buffer.from(text(input, 'content')), format);
      return {
        ok: true,
        entries: Object.fromEntries(
          [...entries].map(([key, entry]) => [key, { ...open(entry), email: emailIn(expected, key) }]),
        ),
      };
    } catch (error) {
      if (!(error instanceof DockerConfigError)) throw error;
      // Upstream has one text for every error; ours names the cause.
      return { ok: false, error: 'error occurred while trying to unmarshal json' };
    }
  },

  encode: (input) => ({
    json: encodeDockerConfigEntry(text(input, 'username'), text(input, 'password'), text(input, 'email')),
  }),

  urls_match: (input) => {
    const pattern = parsePattern(text(input, 'pattern'));
    const target = parsePattern(text(input, 'target'));
    if (pattern === undefined || target === undefined) return { match: false, error: notCompared };
    return { match: matches(pattern, target) };
  },

  key_normalize: (input) => {
    const normalized = indexKey(text(input, 'key'));
    return normalized === undefined ? { error: notCompared } : { normalized };
  },

  keyring_lookup: (input) => {
    const held = list(input, 'entries').flatMap((entry) => {
      const fields = itemOf(entry);
      const key = indexKey(text(fields, 'key'));
      return key === undefined ? [] : [{ key, credential: credential(fields), origin: 'vector' }];
    });
    const found = createKeyring('docker-config', held).lookup(text(input, 'image'));
    return { found: found.length > 0, usernames: found.map((match) => match.credential.username) };
  },

  default_registry_match: (input) => ({ isDefault: isDockerHub(text(input, 'image')) }),

  make_keyring: async (input) => {
    const secrets = list(input, 'secrets').map((item) => {
      const fields = itemOf(item);
      const data = Object.entries(object(fields, 'data')).map(([key, value]) => {
        return [key, Buffer.from(String(value)).toString('base64')];
      });
      return { type: text(fields, 'type'), data: Object.fromEntries(data) as Record<string, string> };
    });
    const node = list(input, 'nodeCredentials').map((item): MatchedCredential => {
      return { credential: credential(itemOf(item)), source: 'docker-config', key: '', origin: '', id: '' };
    });
    const sources = combineSources([
      createPullSecretSource(secrets),
      { name: 'docker-config', lookup: () => Promise.resolve(node), problems: () => [] },
    ]);
    try {
      const found = await sources.lookup(text(input, 'image'));
      return {
        credentials: found.map(({ credential: { username, password } }) => ({
          username,
          password: reveal(password),
        })),
      };
    } catch (error) {
      if (!(error instanceof CredentialError)) throw error;
      return { error: notCompared };
    }
  },

  fetch_secrets: (input) => {
    const existing = new Set(texts(input, 'existing'));
    const names = pullSecretNames({ imagePullSecrets: texts(input, 'refs').map((name) => ({ name })) });
    return {
      used: names.filter((name) => existing.has(name)),
      missing: names.filter((name) => !existing.has(name)),
    };
  },
};

function open({ username, password }: Credential) {
  return { username, password: reveal(password), email: notCompared };
}

/** Not compared: archwright only checks its type. */
function emailIn(expected: unknown, key: string): unknown {
  const entries = isObject(expected) ? expected['entries'] : undefined;
  const entry = isObject(entries) ? entries[key] : undefined;
  return isObject(entry) ? entry['email'] : undefined;
}

function credential(fields: Input): MatchedCredential['credential'] {
  return { username: text(fields, 'username'), password: secret(text(fields, 'password')) };
}
