/** Handlers of docker_config_auth.json, keyring_match.json and image_pull_secrets.json. See `handler.ts` for the convention. */
import type { Handlers } from './handler.ts';

export const credentials: Handlers = {};
