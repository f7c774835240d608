/**
 * Whether policy.json lets CRI-O pull an image at all (go.podman.io/image signature/policy_config.go,
 * docker/policyconfiguration/naming.go). Signatures are not checked: an image that needs one counts as pullable.
 */
import { posix } from 'node:path';
import {
  array,
  literal,
  minLength,
  object,
  optional,
  picklist,
  pipe,
  record,
  strictObject,
  string,
  variant,
  type InferOutput,
} from 'valibot';
import { ifError } from '../../src/async/if-error.ts';
import { FileError, listDirectory, readBounded, statPath } from '../../src/files/read.ts';
import { parseJson } from '../../src/http/json.ts';
import { readShape } from '../../src/http/shape.ts';
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

/** Of signatures, the members are not checked. */
const signatures = ['signedBy', 'signedBaseLayer', 'sigstoreSigned'] as const;
const requirements = pipe(
  array(
    variant('type', [
      strictObject({ type: literal('insecureAcceptAnything') }),
      strictObject({ type: literal('reject') }),
      object({ type: picklist(signatures) }),
    ]),
  ),
  minLength(1),
);
const policySchema = strictObject({
  default: requirements,
  transports: optional(record(string(), record(string(), requirements)), {}),
});

/** Without unknown members, as CRI-O reads it. @throws InvalidConfig */
export function parsePolicy(content: Uint8Array): Policy {
  const document = readShape(policySchema, parseJson(new TextDecoder().decode(content)), (where, problem) =>
    invalid(`${where || 'the document'} ${problem}`),
  );
  const { docker = {} } = document.transports;
  const scopes = Object.entries(docker).map(([scope, list]) => [scope, verdictOf(list)] as const);
  return { default: verdictOf(document.default), scopes: new Map(scopes) };
}

/** All requirements of a list must allow the image. */
function verdictOf(list: InferOutput<typeof requirements>): Verdict {
  if (list.some(({ type }) => type === 'reject')) return 'rejected';
  return list.every(({ type }) => type === 'insecureAcceptAnything') ? 'allowed' : 'unknown';
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
