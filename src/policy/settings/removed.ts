/** Settings that are gone. Whoever still has one reads what to do, instead of the most similar name. */
import { didYouMean } from '../../names/suggestion.ts';

const removed: Readonly<Record<string, string>> = {
  gateWorkers: 'about 1,000 gated pods may wait for lookups at the same time',
  movedPodsName: 'the leader remembers its evictions in memory',
  webhookAbsenceTime:
    'Fail stays Fail; set failurePolicy to Ignore if pods must be created while no webhook answers',
};

/**
 * The end of a message about an unknown setting.
 * @param name as it is written
 * @param known such names
 * @param nameOf the name of a key, such as its variable. Default: the key
 */
export function hintAboutUnknown(
  name: string,
  known: Iterable<string>,
  nameOf: (key: string) => string = (key) => key,
): string {
  const [, instead] = Object.entries(removed).find(([key]) => nameOf(key) === name) ?? [];
  return instead === undefined ? didYouMean(name, known) : `; it was removed: ${instead}`;
}
