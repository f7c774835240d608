/** The subcommands that people and Jobs run: everything but the servers. */
export * as inspect from './inspect.ts';
export * as explain from './explain.ts';
export * as report from './report.ts';
export * as check from './check.ts';
export * as rollout from './rollout.ts';
export * as status from './status.ts';
export * as clean from './clean.ts';
export * as probe from './probe.ts';
export * as config from './config.ts';
export * as completion from './completion.ts';
