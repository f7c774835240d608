/**
 * The docker login of the user of the command line, read by the kubelet's rules. Logins in a credential helper are empty
 * entries in that file and give no password.
 */
import { join } from 'node:path';

/**
 * The file of `docker login`: `$DOCKER_CONFIG/config.json` if that is set, else `~/.docker/config.json`.
 * @returns candidates for `createDockerConfigSource`
 */
export function dockerLoginCandidates(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): readonly string[] {
  const directory = environment['DOCKER_CONFIG'];
  return [
    directory === undefined || directory === ''
      ? join(home, '.docker', 'config.json')
      : join(directory, 'config.json'),
  ];
}
