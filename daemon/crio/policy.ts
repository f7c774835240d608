/**
 * Whether policy.json lets CRI-O pull an image at all (go.podman.io/image signature/policy_config.go,
 * docker/policyconfiguration/naming.go). Signatures are not checked: an image that needs one counts as pullable.
 */
import { posix } from 'node:path';
import * as v from 'valibot';
import { parseJson, readShape } from '../../src/http/json.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { orBroken, type NodeFiles } from '../node-files.ts';
import { ConfigFileError, inFile, invalid } from '../toml.ts';
import { keysFor } from './auth-files.ts';
import type { CrioConf } from './crio-conf.ts';
import { parseCanonical } from './pull-sources.ts';

/** Whether images are rejected, by scope of the transport `docker`. */
export interface Policy {
  readonly default: boolean;
  readonly scopes: ReadonlyMap<string, boolean>;
}

export interface PolicyFile extends Policy {
  readonly path: string;
  /** Namespaces may have policies of their own. */
  readonly hasNamespaces: boolean;
}

/** The policies of OpenShift have some kilobytes, with keys in them. */
const maxPolicyBytes = 1024 * 1024;
/** One file for each namespace that has a policy. */
const maxNamespaces = 10_000;

/**
 * The policy of the node. Without the file CRI-O could not have pulled the agent, so a missing one is not mounted.
 * @returns `undefined` if it is missing
 * @throws ConfigFileError if every pull fails
 */
export async function loadPolicyFile(
  { home, signaturePolicy, signaturePolicyDir }: CrioConf,
  files: NodeFiles,
): Promise<PolicyFile | undefined> {
  const own = posix.join(home, '.config/containers/policy.json');
  const hasOwn = signaturePolicy === '' && (await orBroken(own, () => files.stat(own))) !== undefined;
  const path = signaturePolicy || (hasOwn ? own : '/etc/containers/policy.json');
  const content = await files.read(path, maxPolicyBytes, 'missing');
  if (!content) return undefined;
  const policy = await inFile(path, () => parsePolicy(content));
  const names = await orBroken(signaturePolicyDir, () => files.names(signaturePolicyDir, maxNamespaces));
  // A directory that cannot be read may have some.
  const hasNamespaces = names instanceof ConfigFileError || names.some((name) => name.endsWith('.json'));
  return { ...policy, path, hasNamespaces };
}

/**
 * Why an image cannot be pulled.
 * @param image complete, without alias and before mirrors
 * @param policy `undefined`: it is missing
 */
export function rejectionOf(
  image: string,
  policy: PolicyFile | ConfigFileError | undefined,
): RegistryError | undefined {
  const { domain } = parseCanonical(image);
  if (policy instanceof ConfigFileError)
    return new RegistryError('unavailable', domain, `the node's CRI-O cannot pull: ${policy.message}`);
  const rule = policy && rejectingRule(policy, image);
  // The policy of a namespace replaces this one, and a lookup is for every namespace.
  if (rule === undefined || policy?.hasNamespaces) return undefined;
  return new RegistryError('forbidden', domain, `${policy?.path}: ${rule} rejects ${image} on this node`);
}

/** The members of signatures are not checked. */
const signatures = ['signedBy', 'signedBaseLayer', 'sigstoreSigned'] as const;
const requirements = v.pipe(
  v.array(
    v.variant('type', [
      v.strictObject({ type: v.literal('insecureAcceptAnything') }),
      v.strictObject({ type: v.literal('reject') }),
      v.object({ type: v.picklist(signatures) }),
    ]),
  ),
  v.minLength(1),
);
const policySchema = v.strictObject({
  default: requirements,
  transports: v.optional(v.record(v.string(), v.record(v.string(), requirements)), {}),
});

/** Omits unknown members, as CRI-O does. @throws InvalidConfig */
export function parsePolicy(content: Uint8Array): Policy {
  const document = readShape(policySchema, parseJson(new TextDecoder().decode(content)), (where, problem) =>
    invalid(`${where || 'the document'} ${problem}`),
  );
  const { docker = {} } = document.transports;
  const scopes = Object.entries(docker).map(([scope, list]) => [scope, rejects(list)] as const);
  return { default: rejects(document.default), scopes: new Map(scopes) };
}

/** All requirements of a list must allow the image. */
function rejects(list: v.InferOutput<typeof requirements>): boolean {
  return list.some(({ type }) => type === 'reject');
}

/** Its place in the file, such as `transports.docker."example.com"`. The most specific scope counts. */
export function rejectingRule(policy: Policy, image: string): string | undefined {
  const scope = scopesOf(image).find((each) => policy.scopes.has(each));
  if (scope === undefined) return policy.default ? 'default' : undefined;
  return policy.scopes.get(scope) ? `transports.docker.${JSON.stringify(scope)}` : undefined;
}

/** The image, its repository and the paths above, `host:port`, then `*.` and the domains above without port. */
function scopesOf(image: string): readonly string[] {
  const { domain, path } = parseCanonical(image);
  const labels = domain.split(':', 1).join('').split('.');
  const domains = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`);
  return [image, ...keysFor(`${domain}/${path}`, 'config.json'), ...domains, ''];
}
