/** Every subcommand, in the order of `archwright --help`. A file is loaded when its subcommand is called. */
import type { Subcommand } from './subcommand.ts';

export interface Entry {
  /** One line for `archwright --help`. */
  readonly summary: string;
  load(): Promise<{ readonly subcommand: Subcommand }>;
}

export const subcommands: Readonly<Record<string, Entry>> = {
  webhook: {
    summary: 'runs the admission webhook',
    load: () => import('./webhook.ts'),
  },
  agent: {
    summary: 'runs the node agent',
    load: () => import('./agent.ts'),
  },
  inspect: {
    summary: 'says which platforms images have',
    load: () => import('./inspect.ts'),
  },
  explain: {
    summary: 'says what would be decided for pods, and why',
    load: () => import('./explain.ts'),
  },
  config: {
    summary: 'checks or prints the configuration',
    load: () => import('./config.ts'),
  },
  completion: {
    summary: 'prints a completion script for a shell',
    load: () => import('./completion.ts'),
  },
};
