/** What a differential suite counts: outcomes, intended differences by rule, and the others as text. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { Behavior, Recorded } from './registry.ts';

interface Side {
  readonly outcome: string;
  readonly requests: readonly Recorded[];
}

interface Compared {
  readonly case: { readonly behaviors: ReadonlyMap<string, Behavior> };
  readonly agent: Side;
}

export interface Difference<Kind extends string> {
  readonly kind: Kind;
  /** Of the runtime. */
  readonly theirs: string;
  /** Of the agent. */
  readonly ours: string;
}

interface Unexplained {
  readonly group: string;
  readonly example: string;
}

/** @param runtime the name of its side */
export function createTally<Runtime extends string, About extends Compared & Readonly<Record<Runtime, Side>>>(
  runtime: Runtime,
) {
  const outcomes = new Map<string, number>();
  const explained = new Map<string, number>();
  const unexplained: Unexplained[] = [];
  return {
    outcomes,
    unexplained,
    add: <Kind extends string>(
      about: About,
      differences: readonly Difference<Kind>[],
      ruleFor: (difference: Difference<Kind>, about: About) => { readonly name: string } | undefined,
    ): void => {
      increase(outcomes, about[runtime].outcome);
      for (const difference of differences) {
        const rule = ruleFor(difference, about);
        if (rule) increase(explained, rule.name);
        else {
          const { kind, theirs, ours } = difference;
          const group = kind === 'outcome' ? `outcome, ${runtime}: ${theirs}, agent: ${ours}` : kind;
          unexplained.push({ group, example: exampleOf(about, about[runtime], difference) });
        }
      }
    },
    report: (t: Test): void => {
      t.comment(`cases: ${counts(outcomes)}`);
      t.comment(`intended differences: ${counts(explained)}`);
      for (const [group, members] of Map.groupBy(unexplained, (each) => each.group)) {
        const examples = members.map(({ example }) => example);
        const [smallest] = examples.sort((one, other) => one.length - other.length);
        t.comment(`${group}: ${members.length}\n${smallest}`);
      }
    },
  };
}

/** The names of intended differences in a section of docs/internals/deviations.md. */
export function documentedDifferences(runtime: string): ReadonlySet<string> {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/internals/deviations.md'), 'utf8');
  const section = text.split(`\n## ${runtime}\n`)[1]?.split('\n## ')[0] ?? '';
  return new Set([...section.matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map(([, name = '']) => name));
}

function increase(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function counts(map: ReadonlyMap<string, number>): string {
  return [...map].map(([key, number]) => `${key} ${number}`).join(', ');
}

/** The case, the behavior of the hosts that got requests, and both sides. */
function exampleOf(about: Compared, theirs: Side, difference: Difference<string>): string {
  const { behaviors, ...one } = about.case;
  const requests = [...theirs.requests, ...about.agent.requests];
  const hosts = new Set(requests.map(({ host }) => host.replace(/:443$/, '')));
  const ofHosts = Object.fromEntries([...hosts].map((host) => [host, behaviors.get(host)]));
  return JSON.stringify({ difference, ...about, case: one, behaviors: ofHosts }, shortened, 2);
}

function shortened(key: string, value: unknown): unknown {
  if (key === 'requests')
    return (value as Side['requests']).map(
      ({ method, scheme, host, path, authorization, status }) =>
        `${method} ${scheme}://${host}${path} ${authorization} ${status}`,
    );
  return typeof value === 'string' && value.includes('-----BEGIN') ? '(PEM)' : value;
}
