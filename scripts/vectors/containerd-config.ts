/** Handlers of containerd_registry.json. See `handler.ts` for the convention. */
import { join } from 'node:path';
import { InvalidConfig, fieldsOf } from '../../daemon/toml.ts';
import {
  parseAuth,
  type Auth,
  effectiveConfigPath,
  readRegistry,
  searchRoots,
  usesLocalPull,
  validateRegistry,
} from '../../daemon/containerd/config/registry.ts';
import {
  imagesTable,
  migrateConfigFile,
  parseConfigFile,
  loadConfig,
  mergeConfig,
  resolveImports,
} from '../../daemon/containerd/config/config.ts';
import { mirrorEndpoints, defaultScheme } from '../../daemon/containerd/endpoint.ts';
import { NodeFiles } from '../../daemon/node-files.ts';
import { rulesFor, type ContainerdRules } from '../../daemon/containerd/config/rules.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { inDirectory, write } from './directory.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { isObject, list, object, text, texts } from './input.ts';

const newest = rulesFor();

/** The last release that is built for a version of config.toml. */
const releases: ReadonlyMap<unknown, string> = new Map([
  [2, '1.7.31'],
  [3, '2.2.0'],
]);

export const containerdConfig: Handlers = {
  registry_endpoints: (input) => {
    const mirrors = new Map(Object.entries(object(input, 'mirrors') as Record<string, string[]>));
    return { endpoints: mirrorEndpoints(mirrors, text(input, 'host')) };
  },

  default_scheme: (input) => ({ scheme: defaultScheme(text(input, 'host')) }),

  cri_parse_auth: (input) => {
    const { auth } = input;
    try {
      const isOurs = isObject(auth) && isForHost(auth, text(input, 'host'));
      const credential = isOurs ? parseAuth(authOf(auth)) : undefined;
      return { username: credential?.username ?? '', secret: credential ? reveal(credential.password) : '' };
    } catch (error) {
      if (error instanceof InvalidConfig) return { error: true };
      throw error;
    }
  },

  validate_registry: (input) => {
    const table = object(input, 'registry');
    const { mirrors, configs, auths } = readRegistry(table, newest);
    const valid = validateRegistry(readRegistry(table, newest));
    return {
      ok: true,
      ...(mirrors.size > 0 && {
        mirrors: Object.fromEntries([...mirrors].map(([host, urls]) => [host, endpoint(urls)])),
      }),
      ...(valid.configs.size > 0 && {
        configs: Object.fromEntries(
          [...valid.configs].map(([host, { auth }]) => [host, auth ? { auth: fieldsOfAuth(auth) } : {}]),
        ),
      }),
      warning:
        auths.size > 0
          ? 'CRIRegistryAuths'
          : configs.size > 0
            ? 'CRIRegistryConfigs'
            : mirrors.size > 0
              ? 'CRIRegistryMirrors'
              : undefined,
    };
  },

  use_local_image_pull: (input) => ({ useLocalImagePull: usesLocalPull(object(input, 'images'), newest) }),

  resolve_imports: (input) =>
    inDirectory(async (root) => {
      for (const path of texts(input, 'existing')) await write(join(root, path), '');
      return {
        paths: await resolveImports(
          text(input, 'parent'),
          texts(input, 'imports'),
          newest,
          new NodeFiles(root),
        ),
      };
    }),

  load_config: (input, { expected }) =>
    inDirectory(async (root) => {
      const files = object(input, 'files');
      for (const [name, content] of Object.entries(files)) await write(join(root, name), String(content));
      const rules: ContainerdRules = {
        ...newest,
        ...('builtinVersion' in input ? {} : { configVersion: 0, refusesNewerFiles: false }),
      };
      const config = await loadConfig(`/${text(input, 'main')}`, rules, new NodeFiles(root));
      const loaded = {
        version:
          config.version === newest.configVersion && 'builtinVersion' in input ? 'current' : config.version,
        root: notCompared,
        disabled_plugins: config.disabledPlugins,
        imports: config.files.map((file) => file.slice(1)).toSorted(),
      };
      // Only the members that a case names are compared.
      return Object.fromEntries(
        Object.entries(loaded).filter(([name]) => isObject(expected) && name in expected),
      );
    }),

  merge_plugin: (input) => {
    const merged = list(input, 'files')
      .map((file) => parseConfigFile(String(file)))
      .reduce((into, from) => mergeConfig(into, from, newest));
    return { plugin: withNumbers(merged.plugins[text(input, 'plugin')]) };
  },

  registry_section: (input) => {
    const rules = rulesFor(releases.get(input['builtinVersion']));
    const file = parseConfigFile(text(input, 'toml'));
    const migrated = rules.migrates ? migrateConfigFile(file, rules.configVersion) : file;
    const images = imagesTable(migrated, rules);
    const registry = readRegistry(fieldsOf(images, '').table('registry') ?? {}, rules);
    return { config_path: effectiveConfigPath(registry, rules) };
  },

  config_path_split: (input) => ({
    roots: searchRoots(text(input, 'config_path'), input['transfer'] !== true),
  }),
};

/** JSON has no big integers. */
function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withNumbers(member)]));
}

/** A mirror is a table with a list; an empty list is omitted. */
function endpoint(urls: readonly string[]): unknown {
  return urls.length > 0 ? { endpoint: urls } : {};
}

/** Requests can limit a credential to one server; configurations and the kubelet do not. */
function isForHost(auth: Input, host: string): boolean {
  return !('serverAddress' in auth) || new URL(text(auth, 'serverAddress')).host === host;
}

function authOf(fields: Input): Auth {
  const hidden = (name: string) => (fields[name] === undefined ? undefined : secret(text(fields, name)));
  const shown = (name: string) => (fields[name] === undefined ? undefined : text(fields, name));
  return {
    username: shown('username'),
    password: hidden('password'),
    auth: hidden('auth'),
    identityToken: hidden('identityToken'),
  };
}

function fieldsOfAuth({ username, password, auth, identityToken }: Auth): unknown {
  const [shownPassword, shownAuth, identitytoken] = [password, auth, identityToken].map(
    (hidden) => hidden && reveal(hidden),
  );
  return { username, password: shownPassword, auth: shownAuth, identitytoken };
}
