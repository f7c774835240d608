/** The program of all credential provider plugins in the box: records its input, behaves as configured. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Side, Seen } from './registries.ts';
import { binDir, type Behavior } from './setup.ts';
import {
  InvalidReference,
  parseReference,
  type Reference,
} from '../../../src/images/references/reference.ts';

export interface Run {
  readonly plugin: string;
  readonly side: Side;
  /** When it began, milliseconds since the epoch. */
  readonly at: number;
  /** With the path of the program. */
  readonly args: readonly string[];
  readonly stdin: string;
  /** `NAME=value`, sorted. */
  readonly environment: readonly string[];
}

const home = '/var/lib/recorder';

const script = `#!/bin/sh
me=${home}/\${0##*/}
run=$me/runs/$(/bin/date +%s%N).$$
/bin/mkdir -p "$run.part"
/bin/cat > "$run.part/stdin"
/bin/cat /proc/$$/environ > "$run.part/environment"
/bin/cat /proc/$PPID/comm > "$run.part/parent"
for argument in "$0" "$@"; do printf '%s\\0' "$argument"; done > "$run.part/args"
/bin/mv "$run.part" "$run"
/bin/cat "$me/stderr" >&2
/bin/cat "$me/stdout"
exit "$(/bin/cat "$me/exit")"
`;

/** Installs programs with these behaviors, and removes all earlier ones and their records. */
export function installPlugins(behaviors: Readonly<Record<string, Behavior>>): void {
  for (const directory of [home, binDir]) {
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
  }
  for (const [name, { stdout, stderr = '', exit = 0 }] of Object.entries(behaviors)) {
    mkdirSync(join(home, name, 'runs'), { recursive: true });
    writeFileSync(join(home, name, 'stdout'), stdout);
    writeFileSync(join(home, name, 'stderr'), stderr);
    writeFileSync(join(home, name, 'exit'), String(exit));
    writeFileSync(join(binDir, name), script);
    chmodSync(join(binDir, name), 0o755);
  }
}

export function recordedRuns(): Run[] {
  if (!existsSync(home)) return [];
  return readdirSync(home)
    .flatMap((plugin) =>
      readdirSync(join(home, plugin, 'runs'))
        .filter((name) => !name.endsWith('.part'))
        .map((name) => readRun(plugin, name)),
    )
    .sort((a, b) => a.at - b.at);
}

function readRun(plugin: string, name: string): Run {
  const part = (file: string): string => readFileSync(join(home, plugin, 'runs', name, file), 'utf8');
  const list = (file: string): string[] => part(file).split('\0').slice(0, -1);
  return {
    plugin,
    side: part('parent').trim() === 'kubelet' ? 'kubelet' : 'agent',
    at: Number(name.split('.')[0]) / 1e6,
    args: list('args'),
    stdin: part('stdin'),
    environment: list('environment').sort(),
  };
}

export interface Observation {
  readonly image: string;
  /** In the order in which they began. */
  readonly runs: readonly Run[];
  /** Users that the registry or its token server got, without immediate repetition; empty: anonymous. */
  readonly presented: readonly string[];
  readonly sentRequests: boolean;
  /** `pulled`, or why not: one class for each attempt. */
  readonly outcome: readonly string[];
  readonly message: string;
}

export interface TimeSpan {
  readonly side: Side;
  readonly reference: Reference | undefined;
  /** Milliseconds since the epoch; `from` is exclusive, `to` inclusive. */
  readonly from: number;
  readonly to: number;
}

/** Everything that happened in the time span of an image. */
export function observed(
  span: TimeSpan,
  all: { readonly runs: readonly Run[]; readonly seen: readonly Seen[] },
): Pick<Observation, 'runs' | 'presented' | 'sentRequests'> {
  const within = ({ side, at }: { readonly side: Side; readonly at: number }): boolean =>
    side === span.side && at > span.from && at <= span.to;
  const seen = all.seen.filter((request) => within(request) && isOf(request, span.reference));
  const presented = seen.flatMap((request) => (request.presented === undefined ? [] : [request.presented]));
  return {
    runs: all.runs.filter((run) => within(run) && imageOf(run) === span.reference?.repository),
    presented: presented.filter((user, index) => user !== presented[index - 1]),
    sentRequests: seen.length > 0,
  };
}

export function isOf({ domain, repository }: Seen, reference: Reference | undefined): boolean {
  return domain === reference?.domain && repository === reference.path;
}

/** `undefined`: an invalid reference. */
export function referenceOf(image: string): Reference | undefined {
  try {
    return parseReference(image);
  } catch (error) {
    if (error instanceof InvalidReference) return undefined;
    throw error;
  }
}

export function imageOf({ stdin }: Run): string {
  try {
    return (JSON.parse(stdin) as { image?: string }).image ?? '';
  } catch {
    return '';
  }
}
