/** The flags of `archwright report`. */
import { architecture, choice, list, text, toggle } from '../program/flag.ts';
import type { Invocation } from '../program/subcommand.ts';
import { lookupFlags } from '../lookups/pod-facts.ts';
import { cacheFlags } from '../wiring/cached-lookups.ts';

export const flags = {
  ...lookupFlags,
  architecture: architecture('Target architecture.', 'arm64', { short: 'a' }),
  by: choice(['workload', 'image'], 'Rows of a table or CSV.'),
  namespace: list('NAME', 'Only pods of this namespace. Can be repeated. Default: all namespaces.', {
    short: 'n',
  }),
  output: choice(['table', 'csv', 'json'], 'Output format.', { short: 'o' }),
  html: text('FILE', 'Writes the report as one page for a browser. `-`: standard output.'),
  publish: toggle(
    'Writes the report and the page into a ConfigMap of archwright’s namespace, and OpenReports objects if the cluster has their definitions.',
  ),
  prices: text('FILE', 'Prices of node types, for the savings.'),
  newerTags: toggle(
    'Looks for newer tags that have the architecture, for at most 50 images, from this machine.',
  ),
  ...cacheFlags,
};

export type ReportCall = Invocation<typeof flags>;
