/**
 * Two rounds: every example is sent, shown and checked. Then all are sent again, without registry requests
 * except a HEAD under the pull policy `Always` or before a refusal.
 */
import { isDeepStrictEqual } from 'node:util';
import { imagesOf } from '../../src/placement/pod/images.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import type { Answer, ApiServer } from './admit.ts';
import { problemsOf } from './check.ts';
import { askedSince, assertOnce, countRequests, givenImages, marks } from './count.ts';
import { DemoError } from './error.ts';
import { printExample } from './details.ts';
import { sentAgain, type Example } from './examples.ts';
import { podIn, type Agents, type Knowledge } from './knowledge.ts';
import { heading, print, printCounts, printProblems } from './print.ts';
import type { Registries } from './registries.ts';
import type { Servers } from './servers.ts';
import { printPods } from './summary.ts';

export interface Rounds {
  readonly examples: readonly Example[];
  readonly apiServer: ApiServer;
  readonly agents: Agents;
  readonly registries: Registries;
  readonly servers: Servers;
  /** Also shows image facts, rules and patches. */
  readonly verbose: boolean;
}

/** An example, the webhook's response, and the reason for it. */
export interface Sent {
  readonly example: Example;
  readonly answer: Answer;
  readonly knowledge: Knowledge;
}

/**
 * Sends each example, and shows and checks the response.
 * @returns the answers, in the order of the examples
 * @throws DemoError if a result is not as expected, after all were shown
 */
export async function firstRound(rounds: Rounds): Promise<readonly Answer[]> {
  const { examples, apiServer, agents, registries } = rounds;
  const sent: Sent[] = [];
  for (const example of examples) {
    const answer = await apiServer.admit(example.request);
    sent.push({ example, answer, knowledge: await agents.explain(example) });
  }
  printPods(sent);
  const wrong = sent.filter(({ example, answer, knowledge }) => {
    const problems = problemsOf(example, answer, knowledge);
    printProblems(example.file, problems);
    return problems.length > 0;
  });
  if (rounds.verbose) for (const each of sent) printExample(each, registries);
  heading('Requests that each registry saw');
  printCounts(countRequests(registries));
  if (wrong.length > 0) {
    throw new DemoError(`not as expected: ${wrong.map(({ example }) => example.file).join(', ')}`);
  }
  printSummary(rounds);
  return sent.map(({ answer }) => answer);
}

function printSummary({ examples, registries, servers }: Rounds): void {
  const given = givenImages(registries);
  assertOnce(given);
  const users = Map.groupBy(given, ({ image }) => image);
  const several = [...users.values()].filter((each) => each.length > 1).flatMap(([first]) => first ?? []);
  const exceptions = several.map(({ image }) => `; ${image} once for each credential that opens it`).join('');
  print(
    `  ${examples.length} objects, ${users.size} images, ${servers.agents.size} nodes: ` +
      `the registries gave out each image once, by one GET of its tag${exceptions}.`,
  );
  print(
    '  The other GETs are parts of an index inside an index, and requests that were refused or found nothing.',
  );
}

/**
 * Sends everything again.
 * @throws DemoError if a response differs, or if a registry gets a request for an image that is neither of
 *   the pull policy `Always` nor of a refused pod
 */
export async function secondRound(rounds: Rounds, before: readonly Answer[]): Promise<void> {
  const { examples, apiServer, registries } = rounds;
  heading('The same once more');
  const from = marks(registries);
  const changed: string[] = [];
  const refused: Example[] = [];
  for (const [index, example] of examples.entries()) {
    const { response, operations } = await apiServer.admit(sentAgain(example.request));
    const earlier = before[index];
    const same =
      response.allowed === earlier?.response.allowed && isDeepStrictEqual(operations, earlier.operations);
    if (!same) changed.push(example.file);
    if (!response.allowed) refused.push(example);
  }
  if (changed.length > 0) throw new DemoError(`answered differently the second time: ${changed.join(', ')}`);
  const always = examples.flatMap((example) => repositoriesIn(example, 'Always'));
  const refusing = refused.flatMap((example) => repositoriesIn(example));
  const requests = askedSince(registries, from);
  const among = (line: string, repositories: readonly string[]): boolean =>
    repositories.some((repository) => line.includes(repository));
  const forAlways = requests.filter((line) => among(line, always));
  // A refusal holds for a few seconds; on a slow machine more have passed since the first round.
  const forRefusals = requests.filter((line) => line.startsWith('HEAD ') && among(line, refusing));
  const unwanted = requests.filter((line) => !forAlways.includes(line) && !forRefusals.includes(line));
  if (unwanted.length > 0) throw new DemoError(`registries were asked again: ${unwanted.join(', ')}`);
  print(`  ${examples.length} objects, the same answers; requests to registries: ${requests.length}`);
  if (forAlways.length > 0) print(`  for the pull policy Always: ${forAlways.join(', ')}`);
  if (forRefusals.length > 0) print(`  before a pod is refused: ${forRefusals.join(', ')}`);
}

/** Paths of the repositories of an example's images, or of those with a pull policy. */
function repositoriesIn({ request }: Example, policy?: string): string[] {
  return imagesOf(podIn(request).pod.spec)
    .filter(({ pullPolicy }) => policy === undefined || pullPolicy === policy)
    .map(({ image }) => {
      const { domain, path } = parseReference(image);
      return `${domain}/v2/${path}/`;
    });
}
