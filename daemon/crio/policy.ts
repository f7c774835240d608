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

/** Whether images are rejected, by scope of the transport `docker`. */
export interface Policy {
  readonly default: boolean;
  readonly scopes: ReadonlyMap<string, boolean>;
}

/** The policies of OpenShift have some kilobytes, with keys in them. */
export const maxPolicyBytes = 1024 * 1024;
/** One file for each namespace that has a policy. */
const maxNamespaces = 10_000;

type PolicyConf = Pick<CrioConf, 'home' | 'signaturePolicy' | 'signaturePolicyDir'>;

/**
 * Why an image cannot be pulled.
 * @param image complete, without alias and before mirrors
 * @throws ConfigFileError if every pull fails
 */
export async function rejectionOf(
  image: string,
  conf: PolicyConf,
  root: string,
): Promise<string | undefined> {
  const where = await policyFile(conf, root);
  const read = async () => parsePolicy(await readBounded(where, { maxBytes: maxPolicyBytes, root }));
  const rule = rejectingRule(await inFile(where, read), image);
  // The policy of a namespace replaces this one, and a lookup is for every namespace.
  if (rule === undefined || (await hasNamespaces(conf.signaturePolicyDir, root))) return undefined;
  return `${where}: ${rule} rejects ${image} on this node`;
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

/** The members of signatures are not checked. */
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
  const scopes = Object.entries(docker).map(([scope, list]) => [scope, rejects(list)] as const);
  return { default: rejects(document.default), scopes: new Map(scopes) };
}

/** All requirements of a list must allow the image. */
function rejects(list: InferOutput<typeof requirements>): boolean {
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
