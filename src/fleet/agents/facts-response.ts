/** Image facts in an agent's answers, checked. */
import type { ImageFacts } from '../../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../../images/facts/wire.ts';
import { AgentError } from './agent-error.ts';

/**
 * The facts in the answer to a request for one image.
 * @param image as requested; facts of another image are no answer
 * @throws AgentError `bad-answer`
 */
export function factsOfAnswer(answer: unknown, image: string, url: string): ImageFacts {
  const bad = (message: string): AgentError => new AgentError('bad-answer', url, message);
  const results =
    typeof answer === 'object' && answer !== null && 'results' in answer ? answer.results : undefined;
  if (!Array.isArray(results) || results.length !== 1)
    throw bad('the answer has not one result for one image');
  const facts = read(results[0]);
  if (facts instanceof InvalidFacts) throw bad(facts.message);
  if (facts.image !== image) throw bad('the result is about another image');
  return facts;
}

/** The facts in one line of the facts that an agent shares; `undefined` if they are invalid or not shared. */
export function factsOfLine(line: string): ImageFacts | undefined {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return undefined;
  }
  const facts = read(json);
  if (facts instanceof InvalidFacts) return undefined;
  const isOfPod = facts.credentialSource === 'pull-secret' || facts.credentialSource === 'service-account';
  return isOfPod ? undefined : facts;
}

function read(value: unknown): ImageFacts | InvalidFacts {
  try {
    return readFacts(value);
  } catch (error) {
    if (error instanceof InvalidFacts) return error;
    throw error;
  }
}
