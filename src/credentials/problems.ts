/** Credential problems of a node, as its agent reports them at `/v1/info`: bounded and without secrets. */
import { asObject } from '../http/json.ts';
import { printable } from '../names/printable.ts';
import { scrub } from '../telemetry/scrub.ts';
import { credentialSourceNames, type SourceProblem } from './credential.ts';

/** Together below half the limit of an answer (32 KiB), even if each character is escaped. */
const maxProblems = 10;
/** Deep paths of nodes are shorter. */
const maxOriginBytes = 200;
/** Messages of plugins may quote a line of their output. */
const maxMessageBytes = 400;

/** What an agent sends. */
export function boundedProblems(problems: readonly SourceProblem[]): readonly SourceProblem[] {
  return problems.slice(0, maxProblems).map(({ source, origin, message }) => ({
    source,
    origin: printable(scrub(origin), maxOriginBytes),
    message: printable(scrub(message), maxMessageBytes),
  }));
}

/** What an agent has sent. Its node may be compromised, so implausible entries are dropped. */
export function readProblems(value: unknown): readonly SourceProblem[] {
  if (!Array.isArray(value)) return [];
  const found = value.flatMap((item: unknown): SourceProblem[] => {
    const { source: name, origin, message } = asObject(item) ?? {};
    const source = credentialSourceNames.find((each) => each === name);
    if (source === undefined || typeof origin !== 'string' || typeof message !== 'string') return [];
    return [{ source, origin, message }];
  });
  return boundedProblems(found);
}

/** One line for people. Most messages of files already begin with the file. */
export function describeSourceProblem({ origin, message }: SourceProblem): string {
  return message.startsWith(origin) ? message : `${origin}: ${message}`;
}
