/**
 * The credential that CRI-O itself has for an endpoint: by the helpers of registries.conf, whose usual list is
 * the auth files alone: `auth.json` and docker's `config.json`, or the older `.dockercfg` (go.podman.io/image
 * pkg/docker/config/config.go `GetCredentialsForRef`). Not the kubelet's rules: only `auth`, `identitytoken` and
 * `credHelpers` count, keys have no wildcards, and one entry decides. CRI-O's namespaced files are never read:
 * they exist for the seconds of a pull and hold the secrets of one namespace.
 */
import { posix } from 'node:path';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import { FairSemaphores } from '../../src/async/fair-semaphore.ts';
import { LoadingCache } from '../../src/async/loading-cache.ts';
import type { Credential, MatchedCredential } from '../../src/credentials/credential.ts';
import {
  type DockerConfigFormat,
  addMembers,
  jsonText,
  mapField,
  stringFields,
  stringOr,
  decodeLogin,
} from '../../src/credentials/docker/docker-config.ts';
import { credentialId } from '../../src/credentials/identity.ts';
import { statPath } from '../../src/files/read.ts';
import { reveal, secret, type Secret } from '../../src/telemetry/secret.ts';
import { askHelper } from '../node-programs.ts';
import { checkBinary } from '../kubelet/run/binary.ts';
import type { Environment } from '../kubelet/run/environment.ts';
import { PluginError } from '../kubelet/run/plugin-error.ts';
import { hostCommand } from '../kubelet/run/run.ts';
import { orBroken, type NodeFiles } from '../node-files.ts';
import { ConfigFileError, inFile } from '../toml.ts';
import type { CrioConf } from './crio-conf.ts';

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

/** Files by path, in the order of the search. An error fails the lookups that reach the file. */
export type AuthFiles = ReadonlyMap<string, AuthFile | ConfigFileError>;

/** The word for the auth files in a list of helpers. */
const filesHelper = 'containers-auth.json';

/** The limit of the kubelet's docker config. */
const maxAuthFileBytes = 4 * 1024 * 1024;
/** CRI-O runs a helper for every endpoint of every pull. Its tokens live for minutes at least. */
const helperAnswerMs = 60_000;
/** A node has a handful of hosts with a helper. A helper for every host is run again for the others. */
const maxHelperAnswers = 100;
/** Concurrent runs of one helper, as of the kubelet's plugins; a busy registry host gets a third. */
const runsPerHelper = 6;

/** The files in the order of the search. */
export function authFilePaths(conf: CrioConf): ReadonlyMap<string, DockerConfigFormat> {
  const { globalAuthFile, environment, home } = conf;
  if (globalAuthFile !== '') return new Map([[globalAuthFile, 'config.json']]);
  const { XDG_RUNTIME_DIR: runtime, XDG_CONFIG_HOME: config, DOCKER_CONFIG: docker } = environment;
  return new Map([
    [runtime ? posix.join(runtime, 'containers/auth.json') : '/run/containers/0/auth.json', 'config.json'],
    [posix.join(config || posix.join(home, '.config'), 'containers/auth.json'), 'config.json'],
    [posix.join(docker || posix.join(home, '.docker'), 'config.json'), 'config.json'],
    [posix.join(home, '.dockercfg'), 'dockercfg'],
  ]);
}

/** The auth files that exist; none if the helpers do not include them. */
export async function loadAuthFiles(
  conf: CrioConf,
  helpers: readonly string[] | undefined,
  files: NodeFiles,
): Promise<AuthFiles> {
  const found = new Map<string, AuthFile | ConfigFileError>();
  if (helpers?.length && !helpers.includes(filesHelper)) return found;
  for (const [path, format] of authFilePaths(conf)) {
    const file = await orBroken(path, async () => {
      const content = await files.read(path, maxAuthFileBytes, 'missing');
      return content && parseAuthFile(content, format);
    });
    if (file) found.set(path, file);
  }
  return found;
}

/** @throws DockerConfigError */
export function parseAuthFile(content: Uint8Array, format: DockerConfigFormat): AuthFile {
  const text = jsonText(content);
  if (format === 'dockercfg')
    return { entries: addMembers(new Map(), text, 'auths', entryOf), helpers: new Map(), format };
  const helperOf = (value: string, _: string, name: string) => stringOr(value, '', `${name}: a value`);
  return {
    entries: mapField(text, 'auths', entryOf),
    helpers: mapField(text, 'credhelpers', helperOf),
    format,
  };
}

function entryOf(text: string): AuthEntry {
  const { auth, identitytoken } = stringFields(text, 'an entry', ['auth', 'identitytoken']);
  return { auth: secret(auth), identityToken: secret(identitytoken) };
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

export class CredentialHelpers {
  readonly #hostRoot: string;
  readonly #stop: AbortSignal;
  readonly #clock: Clock;
  readonly #answers: LoadingCache<Credential | undefined>;
  readonly #places = new FairSemaphores({ places: runsPerHelper });

  /** @param stop kills helpers that run, and those that wait for a place */
  constructor(hostRoot: string, stop: AbortSignal, clock: Clock = systemClock) {
    this.#hostRoot = hostRoot;
    this.#stop = stop;
    this.#clock = clock;
    this.#answers = new LoadingCache({ clock, maxEntries: maxHelperAnswers });
  }

  /**
   * The first credential that a helper or a file has.
   * @param repository of the endpoint: `host[:port]/path`
   * @param names `credential-helpers` of registries.conf; none: the files
   * @param environment of CRI-O, for the helpers
   * @throws ConfigFileError if none has one and one failed: CRI-O could not use the endpoint
   */
  async credentialFor(
    repository: string,
    names: readonly string[] | undefined,
    files: AuthFiles,
    environment: Environment,
  ): Promise<MatchedCredential | undefined> {
    const host = hostOf(repository);
    const ask = (helper: string) => this.#ask(helper, host, environment);
    let failure: ConfigFileError | undefined;
    for (const name of names?.length ? names : [filesHelper]) {
      const found = await orBroken(name, () =>
        name === filesHelper ? credentialInFiles(files, repository, ask) : ask(name),
      );
      if (found instanceof ConfigFileError) failure ??= found;
      else if (found !== undefined) return found;
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }

  async #ask(name: string, host: string, environment: Environment): Promise<MatchedCredential | undefined> {
    const commandOf = async (plugin: string) =>
      hostCommand(this.#hostRoot, await findProgram(plugin, environment, this.#hostRoot), ['get']);
    const credential = await this.#answers.get(`${name} ${host}`, async () => {
      const leave = await this.#places.get(name).enter(host, this.#stop);
      try {
        const value = await askHelper(name, host, commandOf, { env: environment }, this.#stop);
        return { value, expiresAt: this.#clock.monotonic() + helperAnswerMs };
      } finally {
        leave();
      }
    });
    return credential && matched(credential, host, `docker-credential-${name}`);
  }
}

/** The first file with a credential, even if a later one has a longer key. */
async function credentialInFiles(
  files: AuthFiles,
  repository: string,
  ask: (helper: string) => Promise<MatchedCredential | undefined>,
): Promise<MatchedCredential | undefined> {
  for (const [path, file] of files) {
    if (file instanceof ConfigFileError) throw file;
    const helper = file.helpers.get(hostOf(repository));
    if (helper === undefined) {
      const entry = await inFile(path, () => credentialIn(file, repository));
      if (entry) return matched(entry.credential, entry.key, path);
    } else {
      const found = await ask(helper);
      if (found) return found;
    }
  }
  return undefined;
}

/** Searches the PATH of CRI-O. @throws PluginError */
async function findProgram(plugin: string, environment: Environment, hostRoot: string): Promise<string> {
  for (const binDir of (environment['PATH'] ?? '').split(':').filter((dir) => dir.startsWith('/'))) {
    const isThere = await statPath(posix.join(binDir, plugin), hostRoot).then(Boolean, () => true);
    if (isThere) return await checkBinary(plugin, { hostRoot, binDir });
  }
  throw new PluginError('missing', 'did not exist in the PATH of CRI-O');
}

function matched(credential: Credential, key: string, origin: string): MatchedCredential {
  return { credential, source: 'cri-o', key, origin, id: credentialId(credential) };
}
