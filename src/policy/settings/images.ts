/** Settings of what is remembered about images, and for how long. */
import { duration, maxTimerMs, size, text } from '../value-kinds/plain.ts';
import { settingsOf } from './setting.ts';

const minute = 60_000;
const day = 86_400_000;
const mebibyte = 1_048_576;

const services = settingsOf('webhook', 'agent', 'controller');
const inspection = settingsOf('webhook', 'agent', 'controller', 'inspect', 'explain');
const agent = settingsOf('agent');

export const imageSettings = {
  ifNotPresentCacheTime: services.live(duration(1000, 365 * day), {
    default: 7 * day,
    help: 'How long image facts of a tag are cached.',
  }),
  pullAlwaysCacheTime: services.live(duration(0, 365 * day), {
    help: 'How long they are cached for the pull policy `Always`. Default: not cached.',
  }),
  revalidateInterval: services.live(duration(1000, maxTimerMs), {
    default: 15 * minute,
    help: 'How often a cached tag in use is compared with its registry, by a `HEAD`.',
  }),
  cacheSize: services.atStart(size(mebibyte, 16 * 1024 * mebibyte), {
    default: 64 * mebibyte,
    help: 'Memory for image facts; the least recently used are removed first.',
  }),
  inspectTimeout: inspection.atStart(duration(100, 10 * minute), {
    default: 15_000,
    help: 'Time limit for one image, over all endpoints and credentials.',
  }),
  stateDir: agent.atStart(text('directory'), {
    help: 'Directory for the agent’s image facts, to survive restarts. Default: memory only.',
  }),
};
