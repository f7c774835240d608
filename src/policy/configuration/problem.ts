/** Problems of a configuration, each with its position for a person to fix it. */
import { formatKey } from './toml.ts';
import type { Path } from '../settings/setting.ts';

export interface Place {
  readonly kind: 'file' | 'environment' | 'flag' | 'default';
  /** For people: `archwright.toml:12`, `ARCHWRIGHT_LISTEN`, `--listen`; empty for a default. */
  readonly where: string;
  /** Counted from 1. */
  readonly line?: number;
}

export interface Problem extends Place {
  /** The setting, or a path in its value: `tolerations[0].key`; empty: the whole source. */
  readonly key: string;
  /** Reads on from the key: `must be …`. */
  readonly message: string;
}

export function describeProblem(problem: Problem): string {
  return [problem.where === '' ? '' : `${problem.where}:`, problem.key, problem.message]
    .filter((part) => part !== '')
    .join(' ');
}

/** A path as people write it: `architectures.arm64.taintsToTolerate[0].key`. */
export function describePath(path: Path): string {
  return path
    .map((step, index) =>
      typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${formatKey(step)}`,
    )
    .join('');
}

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}
