/** Every setting of the program, by its TOML key, in the order of the reference page. */
import type { Setting } from './setting.ts';
import { certificateSettings, controllerSettings } from './controller.ts';
import { imageSettings, kubeletSettings, registrySettings, runtimeSettings } from './images.ts';
import { placementSettings } from './placement.ts';
import { servingSettings } from './serving.ts';

export const settings = {
  ...placementSettings,
  ...imageSettings,
  ...registrySettings,
  ...kubeletSettings,
  ...runtimeSettings,
  ...servingSettings,
  ...controllerSettings,
  ...certificateSettings,
};

/** A value for every setting. Durations are in milliseconds, sizes in bytes. */
export type Configuration = {
  readonly [Key in keyof typeof settings]: (typeof settings)[Key] extends Setting<infer T> ? T : never;
};
