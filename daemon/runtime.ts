/**
 * The container runtime of a node: from where it pulls an image, with which credentials, and what it is. Each
 * runtime has its folder (`containerd/`, `crio/`), which reads the runtime's own files below the host root.
 */
import { ifError } from '../src/async/if-error.ts';
import type { Problem } from '../src/credentials/credential.ts';
import { LiveSource, type LiveSourceOptions, type Reading } from '../src/credentials/sources/file-source.ts';
import { leftOut, type SourcePart } from '../src/files/source-part.ts';
import type { WatchOptions } from '../src/files/live.ts';
import type { NodeReport } from '../src/nodes/node-report.ts';
import type { Endpoint, EndpointSource, PullTarget } from '../src/registry/endpoints/endpoint.ts';
import type { Metrics } from '../src/telemetry/metrics.ts';
import { NodeFiles } from './node-files.ts';
import { createVersionFinder, type VersionedProgram, type VersionFinder } from './node-programs.ts';
import { ConfigFileError } from './toml.ts';

export interface RuntimeOptions extends Omit<WatchOptions, 'root'> {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** Default: the output of the node's program. */
  readonly version?: string | undefined;
  readonly metrics?: Metrics | undefined;
}

/** The files that a runtime reads for each pull: of a broken one, only the pulls that need it fail. */
export interface PullReading<Files> extends Pick<Reading<unknown>, 'problems' | 'content'> {
  readonly files: Files;
  readonly parts: readonly SourcePart[];
}

interface Found<Node, Files> {
  readonly node: Node;
  readonly files: Files;
  readonly parts: readonly SourcePart[];
  /** A file that was broken at the start: what the runtime runs with is unknown. */
  readonly unknown: ConfigFileError | undefined;
}

interface Traits<Node, Files> extends Pick<LiveSourceOptions<unknown>, 'name' | 'dirs'> {
  /** A text for people. */
  readonly label: string;
  readonly program: VersionedProgram;
  /** The result without any file. */
  readonly initial: Pick<Found<Node, Files>, 'node' | 'files'>;
  /** What a file that was broken at the start means. */
  readonly ifUnknown: string;
}

/**
 * A runtime by its files, which are read again when they change. As long as it would not start with them, its
 * last good configuration stays in force.
 *
 * It is a credential source for descriptions and fingerprints only. Lookups of it are empty: its credentials
 * belong to hosts, so each endpoint has its own (`Endpoint.ownCredential`).
 */
export abstract class Runtime<Node, Files> extends LiveSource<Found<Node, Files>> implements EndpointSource {
  readonly #traits: Traits<Node, Files>;
  #last: Node | undefined;
  protected readonly files: NodeFiles;
  protected readonly findVersion: VersionFinder;

  constructor(options: RuntimeOptions, traits: Traits<Node, Files>) {
    const { hostRoot, version } = options;
    const { label, program, initial, name, dirs } = traits;
    super({
      ...options,
      root: hostRoot,
      name,
      dirs,
      initial: { ...initial, parts: [], unknown: undefined },
      problemText: `the configuration of ${label} has a problem`,
    });
    this.files = new NodeFiles(hostRoot);
    this.#traits = traits;
    const find = createVersionFinder(program, hostRoot, this.closing);
    this.findVersion = version === undefined ? find : () => Promise.resolve({ version });
  }

  abstract endpoints(target: PullTarget): Promise<readonly Endpoint[]>;
  /** One line for people. */
  abstract description(): string;
  /** The kubelet's runtime, and how it pulls, as far as that is known. */
  abstract report(): Pick<NodeReport, 'runtime' | 'pullMode'>;
  /** @throws ConfigFileError if the runtime would not start */
  protected abstract readNode(): Promise<Node>;
  protected abstract readPullFiles(node: Node): Promise<PullReading<Files>>;

  lookup(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  describe(): Promise<readonly SourcePart[]> {
    const problems = this.problems();
    const broken = new Set(problems.map(({ origin }) => origin));
    const parts = this.found.parts.filter(({ state, where }) => state === 'used' || !broken.has(where));
    return Promise.resolve([...parts, ...leftOut(problems)]);
  }

  protected async read(): Promise<Reading<Found<Node, Files>>> {
    const { label, initial, ifUnknown } = this.#traits;
    this.files.dirs.clear();
    let broken: ConfigFileError | undefined;
    const current = await this.readNode().catch(ifError(ConfigFileError, (error) => void (broken = error)));
    if (current) this.#last = current;
    const node = this.#last ?? initial.node;
    const { files, parts, content, problems } = await this.readPullFiles(node);
    const all: Problem[] = [...problems];
    if (broken) {
      const consequence = this.#last ? 'the last good content stays in force' : ifUnknown;
      const message = `${broken.reason}; ${label} would not start with it; ${consequence}`;
      all.unshift({ origin: broken.where, message });
    }
    const unknown = this.#last ? undefined : broken;
    return { found: { node, files, parts, unknown }, problems: all, content, dirs: [...this.files.dirs] };
  }
}

/** Problems of files that only some pulls need. */
export function pullProblem({ where: origin, reason }: ConfigFileError): Problem {
  return { origin, message: `${reason}; pulls that need it fail on this node` };
}
