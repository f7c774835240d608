/**
 * Whether policy.json lets CRI-O pull an image at all (go.podman.io/image signature/policy_config.go,
 * docker/policyconfiguration/naming.go). Signatures are not checked: what needs one may be pulled.
 */
import { posix } from 'node:path';
import { ifError } from '../../src/async/if-error.ts';
import { jsonText, objectMembers } from '../../src/credentials/docker/docker-config.ts';
import { FileError, listDirectory, readBounded, statPath } from '../../src/files/read.ts';
import { items, readString } from '../../src/http/json-text.ts';
import { inFile, invalid } from '../toml.ts';
import { keysFor } from './auth-file.ts';
import type { CrioConf } from './crio-conf.ts';
import { parseCanonical } from './pull-sources.ts';

type Verdict = 'allowed' | 'rejected' | 'unknown';

export interface PolicyVerdict {
  /** `unknown`: a signature decides, or the policy of a namespace. */
  readonly verdict: Verdict;
  /** The file. */
  readonly where: string;
  /** Place of the requirement in the file, such as `transports.docker."example.com"`. */
  readonly rule: string;
}

/** Requirements of the transport `docker` by scope. */
export interface Policy {
  readonly default: Verdict;
  readonly scopes: ReadonlyMap<string, Verdict>;
}

/** The policies of OpenShift have some kilobytes, with keys in them. */
export const maxPolicyBytes = 1024 * 1024;
/** One file for each namespace that has a policy. */
const maxNamespaces = 10_000;

type PolicyConf = Pick<CrioConf, 'home' | 'signaturePolicy' | 'signaturePolicyDir'>;

/**
 * @param image complete, without alias and before mirrors
 * @throws ConfigFileError if every pull fails
 */
export async function policyFor(image: string, conf: PolicyConf, root: string): Promise<PolicyVerdict> {
  const where = await policyFile(conf, root);
  const read = async () => parsePolicy(await readBounded(where, { maxBytes: maxPolicyBytes, root }));
  const { verdict, rule } = applyPolicy(await inFile(where, read), image);
  // The policy of a namespace replaces this one, and a lookup is for every namespace.
  if (verdict === 'rejected' && (await hasNamespaces(conf.signaturePolicyDir, root)))
    return { verdict: 'unknown', where, rule };
  return { verdict, where, rule };
}

/** The file that is used, which may not exist. */
export async function policyFile({ home, signaturePolicy }: PolicyConf, root: string): Promise<string> {
  if (signaturePolicy !== '') return signaturePolicy;
  const own = posix.join(home, '.config/containers/policy.json');
  const stats = await statPath(own, root).catch(() => undefined);
  return stats === undefined ? '/etc/containers/policy.json' : own;
}

/** A directory that cannot be read may have some. */
async function hasNamespaces(dir: string, root: string): Promise<boolean> {
  return await listDirectory(dir, { maxEntries: maxNamespaces, root }).then(
    (names) => names.some((name) => name.endsWith('.json')),
    ifError(FileError, ({ code }) => code !== 'missing'),
  );
}

/** Without unknown and duplicate members, as CRI-O reads it. @throws InvalidConfig, DockerConfigError */
export function parsePolicy(content: Uint8Array): Policy {
  const document = objectOf(jsonText(content), 'the document', ['default', 'transports']);
  const written = document.get('default');
  if (written === undefined) throw invalid('default is missing');
  const scopes = new Map<string, Verdict>();
  for (const [transport, value] of objectOf(document.get('transports') ?? '{}', 'transports')) {
    const where = `transports.${JSON.stringify(transport)}`;
    for (const [scope, requirements] of objectOf(value, where)) {
      const verdict = verdictOf(requirements, `${where}.${JSON.stringify(scope)}`);
      if (transport === 'docker') scopes.set(scope, verdict);
    }
  }
  return { default: verdictOf(written, 'default'), scopes };
}

/** By type. Of the others, the members are not checked. */
const verdicts: ReadonlyMap<string, Verdict> = new Map([
  ['insecureAcceptAnything', 'allowed'],
  ['reject', 'rejected'],
  ['signedBy', 'unknown'],
  ['signedBaseLayer', 'unknown'],
  ['sigstoreSigned', 'unknown'],
]);

/** All requirements of a list must allow the image. */
function verdictOf(text: string, where: string): Verdict {
  const found = new Set<Verdict>();
  for (const item of items(text) ?? []) {
    const requirement = objectOf(item, where);
    const type = readString(requirement.get('type') ?? 'null') ?? '';
    const verdict = verdicts.get(type);
    if (verdict === undefined) throw invalid(`${where} has a requirement of an unknown type`);
    if (verdict !== 'unknown' && requirement.size > 1)
      throw invalid(`${where}: ${type} has no other members`);
    found.add(verdict);
  }
  if (found.size === 0) throw invalid(`${where} must be a list with a requirement`);
  return (['rejected', 'unknown'] as const).find((each) => found.has(each)) ?? 'allowed';
}

function objectOf(text: string, where: string, known?: readonly string[]): ReadonlyMap<string, string> {
  if (text.trim() === 'null') throw invalid(`${where} is not an object`);
  const found = objectMembers(text, where);
  const map = new Map(found);
  if (map.size < found.length) throw invalid(`${where} has a member twice`);
  const other = [...map.keys()].find((name) => known?.includes(name) === false);
  if (other !== undefined) throw invalid(`${where} has an unknown member`);
  return map;
}

/** The most specific scope counts. */
export function applyPolicy(policy: Policy, image: string): Pick<PolicyVerdict, 'verdict' | 'rule'> {
  for (const scope of scopesOf(image)) {
    const verdict = policy.scopes.get(scope);
    if (verdict !== undefined) return { verdict, rule: `transports.docker.${JSON.stringify(scope)}` };
  }
  return { verdict: policy.default, rule: 'default' };
}

/** The image, its repository and the paths above, `host:port`, then `*.` and the domains above without port. */
function scopesOf(image: string): readonly string[] {
  const { domain, path } = parseCanonical(image);
  const labels = domain.split(':', 1).join('').split('.');
  const domains = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`);
  return [image, ...keysFor(`${domain}/${path}`, 'config.json'), ...domains, ''];
}
