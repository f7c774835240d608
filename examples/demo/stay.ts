/** `--stay`: everything keeps running, for reviews by hand. */
import { join } from 'node:path';
import { mutatePath } from './admit.ts';
import { reviewOf, type Example } from './examples.ts';
import { heading, print } from './print.ts';
import type { Setup } from './setup.ts';
import type { Workspace } from './workspace.ts';

/** Writes a body for each example and prints how to send one, until `stop` aborts or a process ends. */
export async function stay(
  workspace: Workspace,
  { servers, configFile }: Setup,
  examples: readonly Example[],
  stop: AbortSignal,
): Promise<void> {
  let first = '';
  for (const { file, request } of examples) {
    const body = await workspace.write(
      join('reviews', file.replace(/\.yaml$/, '.json')),
      `${reviewOf(request)}\n`,
    );
    if (file === 'sidecars.yaml' || first === '') first = body;
  }
  heading('Still running; Ctrl-C ends it');
  print('  One more review:');
  print(
    [
      'curl --silent --show-error',
      `--cacert ${quoted(servers.webhookCaFile)}`,
      `--header 'Content-Type: application/json'`,
      `--data-binary @${quoted(first)}`,
      quoted(`${servers.webhook.url}${mutatePath}`),
    ].join(' '),
  );
  print(`  Bodies of all examples: ${join(workspace.dir, 'reviews')}`);
  print(`  Configuration, taken over when it changes: ${configFile}`);
  print(`  Logs: ${join(workspace.dir, 'logs')}`);
  const stopped = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.race([stopped, servers.failed]);
}

/** For a shell. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
