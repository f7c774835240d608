/** The home directory of this process's user. */
import { homedir } from 'node:os';

/** `/` for a user without one, as in containers: an unknown id, and no variable HOME. */
export function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}
