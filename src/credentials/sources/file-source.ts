/**
 * What the sources that live in files share: they are read again when their directories change, their problems are
 * logged once, and the slow fingerprint is computed only when what they hold has really changed.
 */
import { liveContent } from '../../files/live.ts';
import type { WatchOptions } from '../../files/watch.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { SourcePart } from '../../files/source-part.ts';
import type { CredentialSource, SourceProblem } from '../credential.ts';
import { contentFingerprint, contentId } from '../identity.ts';
import { createKeyring, type HeldCredential, type Keyring } from '../keyring/keyring.ts';
import { bindSourceMetrics, type LiveSourceName } from './metrics.ts';

/** A source with files behind it. */
export interface LiveCredentialSource extends CredentialSource {
  /** Each part of it as it was found, in the order in which they are looked at. */
  describe(): Promise<readonly SourcePart[]>;
  /** Looks at the files now instead of at the next change. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** What a source found in its files; one that is wrong in part has both. */
export interface Findings {
  readonly held: readonly HeldCredential[];
  readonly problems: readonly SourceProblem[];
  /** Everything that was looked at, the problems included. */
  readonly parts: readonly SourcePart[];
}

export interface FileSourceOptions extends WatchOptions {
  readonly metrics?: Metrics | undefined;
  /** Called when the source holds something else than before. */
  readonly onChange?: (() => void) | undefined;
}

interface State extends Findings {
  readonly id: string;
  readonly keyring: Keyring;
  readonly fingerprint: string;
}

/**
 * @param name kind of the source
 * @param dirs directories whose entries matter
 * @param read finds out what there is; never called twice at once
 */
export async function createFileSource(
  name: LiveSourceName,
  dirs: readonly string[],
  read: () => Promise<Findings>,
  options: FileSourceOptions = {},
): Promise<LiveCredentialSource> {
  const log = options.log?.child({ credentialSource: name });
  const meter = bindSourceMetrics(options.metrics, name);
  let last: State = {
    held: [],
    problems: [],
    parts: [],
    id: contentId([]),
    keyring: createKeyring(name, []),
    fingerprint: await contentFingerprint(name, []),
  };

  async function look(): Promise<State> {
    const { held, problems, parts } = await read();
    const known = new Set(last.problems.map(identify));
    for (const problem of problems) {
      if (!known.has(identify(problem))) {
        log?.warn({ origin: problem.origin, problem: problem.message }, 'credentials are left out');
      }
    }
    const id = contentId(held);
    const content =
      id === last.id
        ? last
        : { keyring: createKeyring(name, held), fingerprint: await contentFingerprint(name, held) };
    last = { held, problems, parts, id, keyring: content.keyring, fingerprint: content.fingerprint };
    return last;
  }

  const live = await liveContent({
    ...options,
    dirs,
    read: look,
    fingerprint: ({ id }) => id,
    onChange: () => options.onChange?.(),
    onRead: (state) => meter.read(state?.problems.length === 0),
    onProblem: (error) => log?.warn({ err: error }, 'reading credentials failed, the last ones stay'),
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

function identify({ origin, message }: SourceProblem): string {
  return `${origin}\0${message}`;
}
