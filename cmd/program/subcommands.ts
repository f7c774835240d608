/** Every subcommand, in the order of `archwright --help`. A file is loaded when its subcommand is called. */
import type { Entry } from './subcommand.ts';

export const subcommands: Readonly<Record<string, Entry>> = {
  webhook: {
    summary: 'runs the admission webhook',
    load: () => import('../webhook.ts'),
  },
  agent: {
    summary: 'runs the node agent',
    load: () => import('../agent.ts'),
  },
  controller: {
    summary: 'runs the controller',
    load: () => import('../controller.ts'),
  },
  inspect: {
    summary: 'says which platforms images have',
    load: () => import('../inspect.ts'),
  },
  explain: {
    summary: 'says what would be decided for pods, and why',
    load: () => import('../explain.ts'),
  },
  report: {
    summary: 'says what of a cluster could run on an architecture, and what keeps the rest',
    load: () => import('../report.ts'),
  },
  clean: {
    summary: 'removes what archwright put into a cluster',
    load: () => import('../clean.ts'),
  },
  probe: {
    summary: 'says whether the API server calls the webhook',
    load: () => import('../probe.ts'),
  },
  config: {
    summary: 'checks or prints the configuration',
    load: () => import('../config.ts'),
  },
  completion: {
    summary: 'prints a completion script for a shell',
    load: () => import('../completion.ts'),
  },
};
