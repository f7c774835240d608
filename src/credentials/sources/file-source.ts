/**
 * Common to all sources that are files: the files are read again when their directories change, their problems
 * are logged once, and the slow fingerprint is computed only if the content changed.
 */
import { liveContent } from '../../files/live.ts';
import type { WatchOptions } from '../../files/watch.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { SourcePart } from '../../files/source-part.ts';
import type { CredentialSource, SourceProblem, HeldCredential } from '../credential.ts';
import { contentFingerprint, contentId } from '../identity.ts';
import { createKeyring, type Keyring } from '../keyring/keyring.ts';
import { newProblems } from '../problems.ts';
import { bindSourceMetrics, type LiveSourceName } from './metrics.ts';

export interface LiveCredentialSource extends CredentialSource {
  /** The state of each part, in order of reading. */
  describe(): Promise<readonly SourcePart[]>;
  /** Reads the files now instead of at the next change. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** The content of a source's files; a partly malformed source has credentials and problems. */
export interface Findings {
  readonly held: readonly HeldCredential[];
  readonly problems: readonly SourceProblem[];
  /** Every part that was read, including the problems. */
  readonly parts: readonly SourcePart[];
}

export interface FileSourceOptions extends WatchOptions {
  readonly metrics?: Metrics | undefined;
  /** Called when the content changed. */
  readonly onChange?: (() => void) | undefined;
}

interface State extends Findings {
  readonly id: string;
  readonly keyring: Keyring;
  readonly fingerprint: string;
}

/** @param read reads the files; never called concurrently */
export async function createFileSource(
  name: LiveSourceName,
  dirs: readonly string[],
  read: () => Promise<Findings>,
  options: FileSourceOptions = {},
): Promise<LiveCredentialSource> {
  const log = options.log?.child({ credentialSource: name });
  const meter = bindSourceMetrics(options.metrics, name);
  async function stateOf(held: readonly HeldCredential[], id: string): Promise<Omit<State, keyof Findings>> {
    return { id, keyring: createKeyring(name, held), fingerprint: await contentFingerprint(name, held) };
  }

  let last: State = { held: [], problems: [], parts: [], ...(await stateOf([], contentId([]))) };

  async function look(): Promise<State> {
    const { held, problems, parts } = await read();
    for (const { origin, message } of newProblems(problems, last.problems)) {
      log?.warn({ origin, problem: message }, 'some credentials are not used');
    }
    const id = contentId(held);
    const changed = id === last.id ? {} : await stateOf(held, id);
    last = { ...last, ...changed, held, problems, parts };
    return last;
  }

  const live = await liveContent({
    ...options,
    dirs,
    read: look,
    fingerprint: ({ id }) => id,
    onChange: () => options.onChange?.(),
    onRead: (state) => meter.read(state?.problems.length === 0),
    onProblem: (error) =>
      log?.warn({ err: error }, 'reading credentials failed; the previous ones stay in force'),
  });

  return {
    name,
    lookup: (repository) => Promise.resolve(last.keyring.lookup(repository)),
    problems() {
      const failure = live.problem();
      return failure === undefined
        ? last.problems
        : [...last.problems, { source: name, origin: dirs.join(', '), message: failure.message }];
    },
    fingerprint: () => last.fingerprint,
    describe() {
      const failure = live.problem();
      return Promise.resolve(
        failure === undefined
          ? last.parts
          : [{ where: dirs.join(', '), state: 'left-out', what: failure.message }],
      );
    },
    refresh: () => live.refresh(),
    close: () => live.close(),
  };
}
