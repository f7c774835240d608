/** The output of the demo. Colors only on a terminal without `NO_COLOR`. */
import { styleText } from 'node:util';
import { table } from '../../cmd/program/table.ts';
import type { ImageVerdict, PlacementDecision } from '../../src/placement/decision.ts';
import type { Answer } from './admit.ts';
import { columns, type RegistryCount } from './count.ts';
import type { Example } from './examples.ts';
import type { Knowledge } from './knowledge.ts';
import type { Registries } from './registries.ts';
import type { Servers } from './servers.ts';

type Style = Parameters<typeof styleText>[0];

function style(format: Style, text: string): string {
  // `styleText` looks at the stream and at NO_COLOR itself.
  return styleText(format, text, { stream: process.stdout });
}

export function print(text = ''): void {
  process.stdout.write(`${text}\n`);
}

export function heading(text: string): void {
  print(`\n${style('bold', text)}`);
}

/** What was started, with what each has that the others lack. */
export function printServers({ agents, webhook }: Servers, registries: Registries): void {
  const credentials = {
    'node-a': "login for docker.io in its kubelet's config.json",
    'node-b': 'login for private.example in creds/private.example.toml',
  };
  print(style('bold', 'archwright demo: everything on 127.0.0.1, nothing is asked outside'));
  print(
    table(
      [
        ...[...agents].map(([name, { process, url }]) => [
          `agent ${name}`,
          url,
          `process ${process.pid}`,
          credentials[name],
        ]),
        ['webhook', webhook.url, `process ${webhook.process.pid}`, 'asks the agents by mutual TLS'],
        ...registries.all.map(({ server, serves }) => [
          `registry ${serves === 'docker.io' ? 'mirror' : ''}`.trim(),
          server.url,
          '',
          registryNote(serves),
        ]),
      ],
      '  ',
    ).trimEnd(),
  );
}

function registryNote(serves: string): string {
  if (serves === 'docker.io') return 'mirror of docker.io, requires Basic authentication';
  return serves === 'private.example' ? `${serves}, requires Bearer tokens` : `${serves}, public`;
}

/** One example: its pod, its image facts, and the decision. */
export function printExample(
  example: Example,
  answer: Answer,
  { decision }: Knowledge,
  registries: Registries,
): void {
  const { kind, namespace, name } = example.request;
  heading(`${example.file}: ${kind.kind} ${namespace}/${name}`);
  for (const line of example.comment) print(style('dim', `  # ${line}`));
  printImages(decision, registries);
  printDecision(answer, decision);
  printPatch(answer);
}

function printImages({ images, outcome }: PlacementDecision, registries: Registries): void {
  if (outcome === 'skipped') {
    print('  images     not looked at');
    return;
  }
  print('  images');
  const rows = images.map((verdict) => [
    verdict.image,
    architecturesText(verdict),
    placeText(verdict, registries),
    sourceText(verdict),
  ]);
  print(table(rows, '    ').trimEnd());
}

function architecturesText({ architectures, unknown, facts }: ImageVerdict): string {
  if (unknown !== undefined) return `unknown: ${unknown}`;
  if (architectures === undefined) return facts?.error?.code === 'not-an-image' ? 'any (an artifact)' : 'any';
  return architectures.join(' ');
}

function placeText({ facts }: ImageVerdict, { mirror }: Registries): string {
  const endpoint = facts?.endpoint ?? '';
  if (endpoint === '') return '-';
  return endpoint === mirror.server.host ? mirror.name : endpoint;
}

/** Credential sources for people. */
const sourceTexts: Readonly<Record<string, string>> = {
  anonymous: 'anonymously',
  'pull-secret': "with the pod's pull secret",
  'registry-toml': "with a node's registry file (registry-toml)",
  'docker-config': "with a kubelet's docker config (docker-config)",
};

function sourceText({ unknown, facts }: ImageVerdict): string {
  if (unknown !== undefined || facts === undefined) return '-';
  return sourceTexts[facts.credentialSource] ?? facts.credentialSource;
}

function printDecision({ response }: Answer, decision: PlacementDecision): void {
  print(`  decision   ${style(response.allowed ? 'green' : 'red', decisionText(decision))}`);
  for (const { rule, message } of decision.reasons) print(`    ${rule}: ${message}`);
  if (decision.gate)
    print('    A controller decides it later, when the images are known, and opens the gate.');
  if (!response.allowed) print(`  message    ${response.status?.message ?? ''}`);
  for (const warning of response.warnings ?? []) print(`  ${style('yellow', 'warning')}    ${warning}`);
}

function decisionText({ outcome, required, preferred, skip, template }: PlacementDecision): string {
  const parts = [
    skip === undefined ? outcome : `${outcome}: ${skip}`,
    ...(template === 'workload' ? ['the template is only looked at'] : []),
    ...(required === undefined ? [] : [`required ${required.join(', ') || 'none'}`]),
    ...preferred.map(({ architecture, weight }) => `${architecture} preferred with weight ${weight}`),
  ];
  return parts.join('; ');
}

function printPatch({ operations, response }: Answer): void {
  if (operations.length === 0) {
    print(`  patch      none${response.allowed ? ', admitted as it is' : ''}`);
    return;
  }
  print(`  patch      ${operations.length} operations, applied without error`);
  for (const operation of operations) {
    const value = 'value' in operation ? ` ${JSON.stringify(operation.value)}` : '';
    print(`    ${operation.op} ${operation.path}${value}`);
  }
}

/** The table of requests. */
export function printCounts(counts: readonly RegistryCount[]): void {
  print(
    table(
      [
        ['registry', ...Object.keys(columns), 'of them refused', 'not found'],
        ...counts.map(({ name, requests, refused, missing }) => [
          name,
          ...[...requests, refused, missing].map(String),
        ]),
      ],
      '  ',
    ).trimEnd(),
  );
}

export function printProblems(file: string, problems: readonly string[]): void {
  for (const problem of problems) print(style('red', `  NOT AS EXPECTED in ${file}: ${problem}`));
}
