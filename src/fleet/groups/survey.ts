/**
 * Asking credential groups whether they can pull, where nobody has to wait for it: one agent of each, the one that owns
 * the repository within its group, so that every webhook asks the same one and it answers the others from memory.
 */
import { setMaxListeners } from 'node:events';
import type { ImageRequest } from '../../images/facts/facts.ts';
import { createFleetLookup, type FleetLookupContext } from '../lookup/lookup.ts';
import { concurrently } from '../../async/concurrently.ts';
import type { Members } from './groups.ts';
import { keyOf, verdictOf, type Pullability } from './pullability.ts';
import { rank } from './rendezvous.ts';

export interface Survey {
  /**
   * Asks these groups. One survey of a repository is under way at a time; who comes meanwhile joins it.
   * @returns resolves when all have answered or their time is up; at once where too many surveys are under way
   */
  ask(question: ImageRequest, groups: readonly Members[]): Promise<void>;
  close(): void;
}

export interface SurveyOptions {
  readonly context: FleetLookupContext;
  readonly pullability: Pullability;
}

/** A burst of new repositories is spread over later admissions; each asks again for what is missing. */
const maxSurveys = 64;
/** Groups asked in one survey; the next one asks further groups. */
const maxGroups = 32;
/** Groups asked at the same time. */
const concurrency = 4;

/** Makes a survey; it asks nobody until it is told to. */
export function createSurvey({ context, pullability }: SurveyOptions): Survey {
  const underWay = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal);

  async function askGroup(question: ImageRequest, { fingerprint, agents }: Members): Promise<void> {
    const ranked = rank(question.reference.repository, agents);
    const facts = await createFleetLookup(context, question, stopping.signal).group(ranked);
    if (stopping.signal.aborted) return;
    const verdict = facts && verdictOf(facts);
    if (verdict === undefined) pullability.silent(question, fingerprint);
    context.meters.surveyed(verdict ?? 'silent');
  }

  return {
    ask: (question, groups) => {
      const key = keyOf(question);
      const present = underWay.get(key);
      if (present) return present;
      if (underWay.size >= maxSurveys || stopping.signal.aborted) return Promise.resolve();
      // The agent may answer from memory, whatever the pod's pull policy says of its own start.
      const asked: ImageRequest = { ...question, pullPolicy: 'IfNotPresent' };
      const survey = concurrently(groups.slice(0, maxGroups), concurrency, (group) => askGroup(asked, group))
        .then(() => undefined)
        .catch((error: unknown) =>
          context.log.error({ err: error }, 'asking credential groups ended unexpectedly'),
        )
        .finally(() => underWay.delete(key));
      underWay.set(key, survey);
      return survey;
    },
    close: () => stopping.abort(),
  };
}
