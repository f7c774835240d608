/** Differences as text: grouped, each group with its smallest example as configuration files and requests. */
import type { Difference } from './compare.ts';
import type { Observed } from './observed.ts';
import type { Recorded } from './registry.ts';
import type { Compared } from './rules.ts';

export interface Unexplained {
  readonly about: Compared;
  readonly difference: Difference;
}

/** @returns a text of one paragraph per kind of difference; empty if there are none */
export function report(unexplained: readonly Unexplained[]): string {
  const groups = Map.groupBy(unexplained, ({ difference }) => groupOf(difference));
  return [...groups]
    .map(([group, members]) => {
      const [smallest] = [...members].sort((one, other) => sizeOf(one) - sizeOf(other));
      return smallest ? `${group}: ${members.length}\n${example(smallest)}` : '';
    })
    .join('\n');
}

function groupOf({ kind, containerd, agent }: Difference): string {
  return kind === 'outcome' ? `outcome, containerd: ${containerd}, agent: ${agent}` : kind;
}

function sizeOf({ about }: Unexplained): number {
  return (
    JSON.stringify([about.case.configuration, about.case.hosts]).length + about.containerd.requests.length
  );
}

function example({ about, difference }: Unexplained): string {
  const { name, domain, by, image, auth, configuration, hosts, behaviors } = about.case;
  const asked = new Set(
    [...about.containerd.requests, ...about.agent.requests].map(({ host }) => host.replace(/:443$/, '')),
  );
  const who = auth ? `${auth.username || 'no name'}, ${auth.password || 'no password'}` : 'none';
  return [
    `  ${name}: ${image} image of ${domain} by ${by}, credential: ${who}`,
    ...Object.entries({ ...configuration, ...hosts }).flatMap(([path, text]) => [
      `  --- ${path}`,
      indent(shortened(text)),
    ]),
    ...[...asked].map((host) => `  ${host} is ${JSON.stringify(behaviors.get(host))}`),
    side('containerd', about.containerd),
    side('agent', about.agent),
    `  ${difference.kind}, containerd:`,
    indent(difference.containerd),
    `  ${difference.kind}, agent:`,
    indent(difference.agent),
    '',
  ].join('\n');
}

function side(name: string, { outcome, message, requests }: Observed): string {
  return [`  ${name}: ${outcome} ${message}`, ...requests.map((request) => `    ${line(request)}`)].join(
    '\n',
  );
}

function line({ method, scheme, host, path, ns, authorization, headers, asked, status }: Recorded): string {
  const where = method === 'CONNECT' ? host : `${scheme}://${host}${path}${ns === '' ? '' : `?ns=${ns}`}`;
  return [method, where, `[${authorization}]`, headers, asked, status]
    .filter((part) => part !== '')
    .join(' ');
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}

function shortened(text: string): string {
  return text.includes('-----BEGIN') ? '(PEM)' : text;
}
