/** Settings of what is remembered about images, and for how long. */
import { duration, maxTimerMs, size, text } from '../kinds/plain.ts';
import { optional, setting } from './setting.ts';

const minute = 60_000;
const day = 86_400_000;
const mebibyte = 1_048_576;

const parts = ['webhook', 'agent', 'controller'] as const;

export const imageSettings = {
  ifNotPresentCacheTime: setting(duration(1000, 365 * day), {
    default: 7 * day,
    help: 'How long what a tag stands for is remembered.',
    parts,
  }),
  pullAlwaysCacheTime: optional(duration(0, 365 * day), {
    help:
      'The same for containers with the pull policy `Always`. Not set: the registry is asked each time, once for all ' +
      'who ask at the same time.',
    parts,
  }),
  revalidateInterval: setting(duration(1000, maxTimerMs), {
    default: 15 * minute,
    help: 'How often a remembered tag that is in use is compared with its registry, by a request that is not counted.',
    parts,
  }),
  cacheSize: setting(size(mebibyte, 16 * 1024 * mebibyte), {
    default: 64 * mebibyte,
    help: 'Memory for what is known about images; the least recently used is forgotten first.',
    parts,
    restart: true,
  }),
  inspectTimeout: setting(duration(100, 10 * minute), {
    default: 15_000,
    help: 'Time limit for learning about one image, all endpoints and credentials together.',
    parts: ['webhook', 'agent', 'controller', 'inspect', 'explain'],
    restart: true,
  }),
  stateDir: optional(text('directory'), {
    help: 'Directory in which the agent keeps what it knows across restarts. Not set: it is kept in memory only.',
    parts: ['agent'],
    restart: true,
  }),
};
