/** Every subcommand, in the order of `archwright --help`. Each file is loaded on demand. */
import type { Entry } from './subcommand.ts';

export const subcommands: Readonly<Record<string, Entry>> = {
  webhook: { summary: 'runs the admission webhook', load: () => import('../webhook.ts') },
  agent: { summary: 'runs the node agent', load: () => import('../agent.ts') },
  controller: { summary: 'runs the controller', load: () => import('../controller.ts') },
  inspect: { summary: 'shows which platforms images have', load: () => import('../inspect.ts') },
  explain: { summary: 'shows the decision for pods, and why', load: () => import('../explain.ts') },
  report: {
    summary: 'shows which pods of a cluster could run on an architecture, and what blocks the rest',
    load: () => import('../report.ts'),
  },
  check: {
    summary: 'checks whether the images in manifests have an architecture',
    load: () => import('../check.ts'),
  },
  rollout: {
    summary: 'shows, pauses, resumes and aborts rollouts to another architecture',
    load: () => import('../rollout.ts'),
  },
  status: {
    summary: 'shows whether archwright works, and what does not',
    load: () => import('../status.ts'),
  },
  clean: {
    summary: 'removes everything that archwright added to a cluster',
    load: () => import('../clean.ts'),
  },
  probe: { summary: 'checks whether the API server calls the webhook', load: () => import('../probe.ts') },
  config: { summary: 'checks or prints the configuration', load: () => import('../config.ts') },
  completion: { summary: 'prints a completion script for a shell', load: () => import('../completion.ts') },
};
