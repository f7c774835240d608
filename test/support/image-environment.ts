import { readFileSync } from 'node:fs';

/** The variables that the image sets, as the last stage of the Dockerfile names them. */
export function imageEnvironment(): Readonly<Record<string, string>> {
  const lines = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8').matchAll(/^ENV (.*)$/gm);
  const pairs = [...lines].at(-1)?.[1]?.split(' ') ?? [];
  return Object.fromEntries(pairs.map((pair) => pair.split('=') as [string, string]));
}
