/** The programs as the chart starts them: arguments, variables and configuration of each container. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { main } from '../../../cmd/program/main.ts';
import { subcommands } from '../../../cmd/program/subcommands.ts';
import type { Entry } from '../../../cmd/program/subcommand.ts';
import { loadConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { ConfigurationError } from '../../../src/policy/configuration/problem.ts';
import { objectsOf } from './rendered.ts';
import { neverAborted } from '../../support/never-aborted.ts';

interface PodSpec {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly env?: readonly { readonly name: string; readonly value?: string }[];
  }[];
  readonly volumes?: readonly { readonly configMap?: { readonly name: string } }[];
}

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
  return objects.flatMap(({ kind, metadata, spec }) => {
    const pod = (kind === 'Pod' ? spec : spec?.template?.spec) as PodSpec | undefined;
    if (pod?.containers === undefined) return [];
    const files = maps.get(pod.volumes?.find(({ configMap }) => configMap)?.configMap?.name) ?? {};
    // Containers of `extraContainers` have no arguments, and the one that pulls the image only prints its version.
    return pod.containers
      .filter(({ args }) => args !== undefined && args[0] !== '--version')
      .map(({ args, env = [] }) => ({
        name: `${metadata?.name} ${args[0]}`,
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
