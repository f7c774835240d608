/**
 * The credential that CRI-O itself has for an endpoint: by the helpers of registries.conf, whose usual list is
 * the auth files alone (go.podman.io/image pkg/docker/config/config.go `GetCredentialsForRef`). Files are read
 * for each lookup, as in CRI-O. Its namespaced files are never read: they exist for the seconds of a pull and
 * hold the secrets of one namespace.
 */
import { posix } from 'node:path';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import { FairSemaphores } from '../../src/async/fair-semaphore.ts';
import { LoadingCache } from '../../src/async/loading-cache.ts';
import type { Credential, MatchedCredential } from '../../src/credentials/credential.ts';
import type { DockerConfigFormat } from '../../src/credentials/docker/docker-config.ts';
import { credentialId } from '../../src/credentials/identity.ts';
import { readBounded, statPath, undefinedIfMissing } from '../../src/files/read.ts';
import { checkBinary } from '../kubelet/run/binary.ts';
import { PluginError } from '../kubelet/run/plugin-error.ts';
import { hostCommand } from '../kubelet/run/run.ts';
import { askHelper } from '../docker-helper.ts';
import { ConfigFileError, inFile } from '../toml.ts';
import { credentialIn, hostOf, parseAuthFile } from './auth-file.ts';
import type { CrioConf } from './crio-conf.ts';

export interface AuthFilesOptions {
  readonly hostRoot: string;
  readonly clock?: Clock | undefined;
  /** Kills helpers that run, and those that wait for a place. */
  readonly stop: AbortSignal;
}

/** The word for the auth files in a list of helpers. */
export const filesHelper = 'containers-auth.json';

/** As for the kubelet's docker config. */
export const maxAuthFileBytes = 4 * 1024 * 1024;

/** CRI-O runs a helper for every endpoint of every pull. Its tokens live for minutes at least. */
const helperAnswerMs = 60_000;
/** A node has a handful of hosts with a helper. A helper for every host is run again for the others. */
const maxHelperAnswers = 100;
/** Concurrent runs of one helper, as of the kubelet's plugins; a busy registry host gets a third. */
const runsPerHelper = 6;

interface AuthFilePath {
  readonly path: string;
  readonly format: DockerConfigFormat;
}

/** The files in the order of the search. */
export function authFilesOf({
  globalAuthFile,
  environment,
  home,
}: Pick<CrioConf, 'globalAuthFile' | 'environment' | 'home'>): readonly AuthFilePath[] {
  const file = (path: string, format: DockerConfigFormat = 'config.json') => ({ path, format });
  if (globalAuthFile !== '') return [file(globalAuthFile)];
  const { XDG_RUNTIME_DIR: runtime, XDG_CONFIG_HOME: config, DOCKER_CONFIG: docker } = environment;
  return [
    file(runtime ? posix.join(runtime, 'containers/auth.json') : '/run/containers/0/auth.json'),
    file(posix.join(config || posix.join(home, '.config'), 'containers/auth.json')),
    file(posix.join(docker || posix.join(home, '.docker'), 'config.json')),
    file(posix.join(home, '.dockercfg'), 'dockercfg'),
  ];
}

export class AuthFiles {
  readonly #options: AuthFilesOptions;
  readonly #clock: Clock;
  readonly #answers: LoadingCache<Credential | undefined>;
  readonly #places = new FairSemaphores({ places: runsPerHelper });

  constructor(options: AuthFilesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#answers = new LoadingCache({ clock: this.#clock, maxEntries: maxHelperAnswers });
  }

  /**
   * The first credential that a helper or a file has.
   * @param repository of the endpoint: `host[:port]/path`
   * @param helpers `credential-helpers` of registries.conf; none: the files
   * @throws ConfigFileError if none has one and one failed: CRI-O could not use the endpoint
   */
  async credentialFor(
    repository: string,
    helpers: readonly string[] | undefined,
    conf: CrioConf,
  ): Promise<MatchedCredential | undefined> {
    let failure: ConfigFileError | undefined;
    for (const helper of helpers?.length ? helpers : [filesHelper]) {
      try {
        const found = await (helper === filesHelper
          ? this.#inFiles(repository, conf)
          : this.#ofHelper(helper, hostOf(repository), conf));
        if (found !== undefined) return found;
      } catch (error) {
        if (!(error instanceof ConfigFileError)) throw error;
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }

  /** The first file with a credential, even if a later one has a longer key. */
  async #inFiles(repository: string, conf: CrioConf): Promise<MatchedCredential | undefined> {
    const host = hostOf(repository);
    for (const { path, format } of authFilesOf(conf)) {
      const found = await inFile(path, async () => {
        const read = readBounded(path, { maxBytes: maxAuthFileBytes, root: this.#options.hostRoot });
        const content = await read.catch(undefinedIfMissing);
        const file = content && parseAuthFile(content, format);
        const helper = file?.helpers.get(host);
        if (helper !== undefined) return await this.#ofHelper(helper, host, conf);
        const entry = file && credentialIn(file, repository);
        return entry && matched(entry.credential, entry.key, path);
      });
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #ofHelper(name: string, host: string, conf: CrioConf): Promise<MatchedCredential | undefined> {
    const { hostRoot, stop } = this.#options;
    const commandOf = async (plugin: string) =>
      hostCommand(hostRoot, await findProgram(plugin, conf.environment, hostRoot), ['get']);
    const credential = await this.#answers.get(`${name} ${host}`, async () => {
      const leave = await this.#places.of(name).enter(host, stop);
      try {
        const value = await askHelper(name, host, commandOf, { env: conf.environment }, stop);
        return { value, expiresAt: this.#clock.monotonic() + helperAnswerMs };
      } finally {
        leave();
      }
    });
    return credential && matched(credential, host, `docker-credential-${name}`);
  }
}

/** In the PATH of CRI-O. @throws PluginError */
async function findProgram(
  plugin: string,
  environment: CrioConf['environment'],
  hostRoot: string,
): Promise<string> {
  for (const binDir of (environment['PATH'] ?? '').split(':').filter((dir) => dir.startsWith('/'))) {
    const isThere = await statPath(posix.join(binDir, plugin), hostRoot).then(Boolean, () => true);
    if (isThere) return await checkBinary(plugin, { hostRoot, binDir });
  }
  throw new PluginError('missing', 'did not exist in the PATH of CRI-O');
}

function matched(credential: Credential, key: string, origin: string): MatchedCredential {
  return { credential, source: 'cri-o', key, origin, id: credentialId(credential) };
}
