/**
 * The docker login of whoever runs the command line: what `docker login` wrote, read by the kubelet's rules. Logins
 * that docker keeps in a credential helper are empty entries there and give no password.
 */
import { join } from 'node:path';

/**
 * Where docker keeps its logins: `$DOCKER_CONFIG/config.json` where that is set, else `~/.docker/config.json`.
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
