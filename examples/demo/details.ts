/** The output of `--verbose`: running servers, and each example with its decision and changes. */
import { table } from '../../cmd/program/table.ts';
import type { ImageVerdict, PlacementDecision } from '../../src/placement/decision.ts';
import type { Answer } from './admit.ts';
import { heading, print, style } from './print.ts';
import type { Registries } from './registries.ts';
import type { Sent } from './rounds.ts';
import type { Servers } from './servers.ts';

/** `--verbose`: the started servers, with their differences. */
export function printServers({ agents, webhook }: Servers, registries: Registries): void {
  const credentials = {
    'node-a': "login for docker.io in its kubelet's config.json",
    'node-b': 'login for private.example in creds/private.example.toml',
  };
  heading('What runs');
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

/** `--verbose`: one example with its image facts, its decision and its patch. */
export function printExample({ example, answer, knowledge }: Sent, registries: Registries): void {
  const { decision } = knowledge;
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
