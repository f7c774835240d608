/** Every subcommand, in the order of `archwright --help`. Each file is loaded on demand. */
import type * as tools from '../tools.ts';
import type { Entry } from './subcommand.ts';

/** The parts of the bundle are as many as the groups of programs that share code, so tools are one group. */
async function tool(name: keyof typeof tools): ReturnType<Entry['load']> {
  return (await import('../tools.ts'))[name];
}

export const subcommands: Readonly<Record<string, Entry>> = {
  webhook: { summary: 'runs the admission webhook', load: () => import('../webhook.ts') },
  agent: { summary: 'runs the node agent', load: () => import('../agent.ts') },
  controller: { summary: 'runs the controller', load: () => import('../controller.ts') },
  inspect: { summary: 'shows which platforms images have', load: () => tool('inspect') },
  explain: { summary: 'shows the decision for pods, and why', load: () => tool('explain') },
  report: {
    summary: 'shows which pods of a cluster could run on an architecture, and what blocks the rest',
    load: () => tool('report'),
  },
  check: {
    summary: 'checks whether the images in manifests have an architecture',
    load: () => tool('check'),
  },
  rollout: {
    summary: 'shows, pauses, resumes and aborts rollouts to another architecture',
    load: () => tool('rollout'),
  },
  status: {
    summary: 'shows whether archwright works, and what does not',
    load: () => tool('status'),
  },
  clean: {
    summary: 'removes everything that archwright added to a cluster',
    load: () => tool('clean'),
  },
  probe: { summary: 'checks whether the API server calls the webhook', load: () => tool('probe') },
  config: { summary: 'checks or prints the configuration', load: () => tool('config') },
  completion: { summary: 'prints a completion script for a shell', load: () => tool('completion') },
};
