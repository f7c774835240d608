/** The programs as the chart starts them: arguments, variables and configuration of each container. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { main } from '../../../cmd/program/main.ts';
import { subcommands } from '../../../cmd/program/subcommands.ts';
import type { Entry } from '../../../cmd/program/subcommand.ts';
import { loadConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { ConfigurationError } from '../../../src/policy/configuration/layer.ts';
import { objectsOf, podsIn } from './rendered.ts';
import { neverAborted } from '../../support/never-aborted.ts';

export interface Program {
  /** Names of the object and the subcommand. */
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Content of the directory of its configuration. */
  readonly files: Readonly<Record<string, string>>;
}

/** Every container that a manifest of the chart runs. */
export function programsIn(manifest: string): readonly Program[] {
  const objects = objectsOf(manifest);
  const maps = new Map(
    objects.flatMap(({ kind, metadata, data = {} }) =>
      kind === 'ConfigMap' ? [[metadata?.name, data] as const] : [],
    ),
  );
  return [...podsIn(objects)].flatMap(([name, { spec }]) => {
    const files = maps.get(spec.volumes?.find(({ configMap }) => configMap)?.configMap?.name) ?? {};
    // The one that pulls the image only prints its version.
    return spec.containers
      .flatMap(({ args, env = [] }) => (args === undefined || args[0] === '--version' ? [] : [{ args, env }]))
      .map(({ args, env }) => ({
        name: `${name} ${args[0]}`,
        args,
        // The downward API gives a node name and the pod's address.
        env: Object.fromEntries(
          env.map(({ name, value = '10.0.0.1' }) => [name, value.replaceAll('$(POD_IP)', '10.0.0.1')]),
        ),
        files,
      }));
  });
}

/** Starts a program until it has read its configuration. @returns its exit code and output */
export async function readConfiguration({ args, env, files }: Program, dir: string) {
  const config = join(dir, 'archwright.toml');
  writeFileSync(config, files['archwright.toml'] ?? '');
  let printed = '';
  const io = {
    env: { ...env, ARCHWRIGHT_CONFIG: config },
    stdin: Readable.from([]),
    out: () => undefined,
    err: (text: string) => void (printed += text),
  };
  const code = await main(args, { io, stop: neverAborted, subcommands: reading });
  return { code, printed };
}

/** The same subcommands, which read their configuration and end. */
const reading: Readonly<Record<string, Entry>> = Object.fromEntries(
  Object.entries(subcommands).map(([name, { summary, load }]) => [
    name,
    {
      summary,
      load: async () => {
        const { subcommand } = await load();
        const run: typeof subcommand.run = async ({ sources }) => {
          const { problems } = await loadConfiguration(sources);
          if (problems.length > 0) throw new ConfigurationError(problems);
          return 0;
        };
        return { subcommand: { ...subcommand, run } };
      },
    },
  ]),
);

/** Where the chart mounts files; ports that a test cannot choose. */
const mounts = /\/(?:etc|var\/lib)\/archwright(?=\/|"|$)/g;
const listen = /_LISTEN$/;

/**
 * Starts the real program, with the mounts below a directory and any free ports.
 * @param changes variables that the cluster would give it
 * @returns whether it serves, and its log. It is killed then.
 */
export async function startProgram(
  { args, env, files }: Program,
  dir: string,
  changes: Readonly<Record<string, string>>,
): Promise<{ readonly serves: boolean; readonly log: string }> {
  const moved = (text: string): string => text.replaceAll(mounts, (path) => join(dir, path));
  for (const [name, content] of Object.entries(files)) {
    const path = join(dir, 'etc/archwright/config', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, moved(content));
  }
  const variables = Object.entries(env).map(
    ([name, value]) => [name, listen.test(name) ? '127.0.0.1:0' : moved(value)] as const,
  );
  const flags = args.map((arg) =>
    arg.startsWith('--facts-listen=') ? '--facts-listen=127.0.0.1:0' : moved(arg),
  );
  const child = spawn(process.execPath, ['cmd/archwright.ts', ...flags], {
    env: { PATH: process.env['PATH'] ?? '', ...Object.fromEntries(variables), ...changes },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  const ended = new Promise<boolean>((resolve) => child.once('close', () => resolve(false)));
  const serves = new Promise<boolean>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes('"health":"')) resolve(true);
    });
  });
  const result = await Promise.race([serves, ended]);
  child.kill('SIGKILL');
  await ended;
  return { serves: result, log };
}
