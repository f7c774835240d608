/** State file of shared facts, so that a restarted agent need not look them up. No secrets. */
import { StateFile, type StateFileOptions } from '../../files/state-file.ts';
import type { ImageFacts } from '../facts/facts.ts';
import { readFacts } from '../facts/wire.ts';

/** 100,000 facts with the ten platforms of an official image take about 70 MB. */
const defaultMaxBytes = 96 * 1_048_576;

type Options = Omit<StateFileOptions<ImageFacts>, 'header' | 'read' | 'maxBytes'> & {
  readonly maxBytes?: number;
};

export class FactsFile extends StateFile<ImageFacts> {
  constructor({ maxBytes = defaultMaxBytes, ...more }: Options) {
    const header = { format: 'archwright image facts', version: 1 };
    super({ ...more, header, read: readFacts, maxBytes });
  }
}
