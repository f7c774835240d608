/** A person's docker credential helpers (`docker-credential-NAME get`), each run once for each registry. */
import { askHelper } from '../../daemon/node-programs.ts';
import type { RunLimits } from '../../daemon/kubelet/run/run.ts';
import { ConfigFileError } from '../../daemon/toml.ts';
import { ifError } from '../../src/async/if-error.ts';
import {
  HelperConfigError,
  helperOf,
  parseHelperConfig,
  type ChosenHelper,
  type HelperConfig,
} from '../../src/credentials/docker/credential-helpers.ts';
import type { Credential, MatchedCredential, SourceProblem } from '../../src/credentials/credential.ts';
import { credentialId } from '../../src/credentials/identity.ts';
import { hashOf } from '../../src/names/hash.ts';
import { createKeyring, holdEntries, type Keyring } from '../../src/credentials/keyring/keyring.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { FileError, readBounded } from '../../src/files/read.ts';
import type { Log } from '../../src/telemetry/log.ts';

/** The limit of `docker-config-file.ts`, which reads the same file. */
const maxConfigBytes = 4 * 1024 * 1024;

export interface CredentialHelpersOptions {
  /** A docker `config.json`. Missing: empty. The source of its `auths` reports a malformed one. */
  readonly file: string;
  /** Variables of the helpers; they are searched in its PATH. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly limits?: RunLimits;
  /** Kills helpers that run. */
  readonly stop?: AbortSignal | undefined;
}

const name = 'docker-config';

export async function openCredentialHelpers(
  options: CredentialHelpersOptions,
): Promise<LiveCredentialSource> {
  return new CredentialHelpers(options, await readConfig(options.file));
}

async function readConfig(file: string): Promise<HelperConfig> {
  try {
    return parseHelperConfig(await readBounded(file, { maxBytes: maxConfigBytes }));
  } catch (error) {
    if (!(error instanceof FileError || error instanceof HelperConfigError)) throw error;
    return { helpers: new Map(), store: undefined, tokens: new Map(), problems: [] };
  }
}

class CredentialHelpers implements LiveCredentialSource {
  readonly name = name;
  readonly #options: CredentialHelpersOptions;
  readonly #config: HelperConfig;
  readonly #tokens: Keyring;
  readonly #answers = new Map<string, Promise<Credential | undefined>>();
  readonly #problems: SourceProblem[] = [];
  readonly #closed = new AbortController();
  readonly #stop: AbortSignal;

  constructor(options: CredentialHelpersOptions, config: HelperConfig) {
    this.#options = options;
    this.#stop = AbortSignal.any([this.#closed.signal, ...(options.stop ? [options.stop] : [])]);
    this.#config = config;
    this.#tokens = createKeyring(name, holdEntries(config.tokens, options.file).held);
    for (const problem of config.problems) this.#report(options.file, problem);
  }

  async lookup(repository: string): Promise<readonly MatchedCredential[]> {
    const tokens = this.#tokens.lookup(repository);
    const helper = helperOf(this.#config, repository);
    if (!helper) return tokens;
    const credential = await this.#once(helper);
    if (!credential) return tokens;
    const origin = `docker-credential-${helper.name}`;
    const id = credentialId(credential);
    return [{ credential, source: name, key: helper.server, origin, id }, ...tokens];
  }

  problems(): readonly SourceProblem[] {
    return this.#problems;
  }

  fingerprint(): string {
    return hashOf([name]);
  }

  async describe(): Promise<[]> {
    return [];
  }

  async refresh(): Promise<void> {
    // It lives for one run of a command.
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#answers.values());
  }

  #once(helper: ChosenHelper): Promise<Credential | undefined> {
    const key = `${helper.name} ${helper.server}`;
    const answer = this.#answers.get(key) ?? this.#run(helper);
    this.#answers.set(key, answer);
    return answer;
  }

  async #run({ name: helper, server }: ChosenHelper): Promise<Credential | undefined> {
    const { env, limits } = this.#options;
    const variables = Object.entries(env).filter(([, value]) => value !== undefined);
    const own = Object.fromEntries(variables) as Record<string, string>;
    const commandOf = (plugin: string) => ({ file: plugin, args: ['get'] });
    return await askHelper(helper, server, commandOf, { env: own, limits }, this.#stop).catch(
      ifError(ConfigFileError, ({ where, reason }) => {
        if (!this.#stop.aborted) this.#report(where, reason);
        return undefined;
      }),
    );
  }

  #report(origin: string, message: string): void {
    this.#problems.push({ source: name, origin, message });
    this.#options.log.warn({ origin, problem: message }, 'some credentials are not used');
  }
}
