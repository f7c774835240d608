/** A person's docker credential helpers (`docker-credential-NAME get`), each run once for each registry. */
import { ifError } from '../src/async/if-error.ts';
import {
  HelperConfigError,
  helperOf,
  parseHelperConfig,
  type ChosenHelper,
  type HelperConfig,
} from '../src/credentials/docker/credential-helpers.ts';
import type { Credential, SourceProblem } from '../src/credentials/credential.ts';
import { credentialId } from '../src/credentials/identity.ts';
import { hashOf } from '../src/names/hash.ts';
import { maxDockerConfigBytes } from '../src/credentials/docker/docker-config-file.ts';
import { createKeyring, holdEntries } from '../src/credentials/keyring/keyring.ts';
import type { LiveCredentialSource } from '../src/credentials/sources/file-source.ts';
import { FileError, readBounded } from '../src/files/read.ts';
import type { Log } from '../src/telemetry/log.ts';
import { askHelper } from './node-programs.ts';
import type { RunLimits } from './kubelet/run/run.ts';
import { ConfigFileError } from './toml.ts';

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
  const { file, env, log, limits } = options;
  const config = await readConfig(file);
  const loggedIn = createKeyring(name, holdEntries(config.tokens, file).held);
  const answers = new Map<string, Promise<Credential | undefined>>();
  const found: SourceProblem[] = [];
  const closed = new AbortController();
  const stop = AbortSignal.any([closed.signal, ...(options.stop ? [options.stop] : [])]);
  const variables = Object.entries(env).filter(([, value]) => value !== undefined);
  const own = Object.fromEntries(variables) as Record<string, string>;

  function report(origin: string, message: string): void {
    found.push({ source: name, origin, message });
    log.warn({ origin, problem: message }, 'some credentials are not used');
  }
  for (const problem of config.problems) report(file, problem);

  async function ask(helper: ChosenHelper): Promise<Credential | undefined> {
    const commandOf = (plugin: string) => ({ file: plugin, args: ['get'] });
    return await askHelper(helper.name, helper.server, commandOf, { env: own, limits }, stop).catch(
      ifError(ConfigFileError, ({ where, reason }) => {
        if (!stop.aborted) report(where, reason);
        return undefined;
      }),
    );
  }

  return {
    name,
    lookup: async (repository) => {
      const tokens = loggedIn.lookup(repository);
      const helper = helperOf(config, repository);
      if (!helper) return tokens;
      const key = `${helper.name} ${helper.server}`;
      const answer = answers.get(key) ?? ask(helper);
      answers.set(key, answer);
      const credential = await answer;
      if (!credential) return tokens;
      const origin = `docker-credential-${helper.name}`;
      const id = credentialId(credential);
      return [{ credential, source: name, key: helper.server, origin, id }, ...tokens];
    },
    problems: () => found,
    fingerprint: () => hashOf([name]),
    describe: async () => [],
    // It lives for one run of a command.
    refresh: async () => undefined,
    close: async () => {
      closed.abort();
      await Promise.all(answers.values());
    },
  };
}

async function readConfig(file: string): Promise<HelperConfig> {
  try {
    return parseHelperConfig(await readBounded(file, { maxBytes: maxDockerConfigBytes }));
  } catch (error) {
    if (!(error instanceof FileError || error instanceof HelperConfigError)) throw error;
    return { helpers: new Map(), store: undefined, tokens: new Map(), problems: [] };
  }
}
