/** Handlers of registries_conf.json, short_names.json and the pulls of a running CRI-O. */
import { join } from 'node:path';
import { defaultCrioConf } from '../../daemon/crio/crio-conf.ts';
import {
  findEntry,
  prefixLength,
  pullSources,
  resolveShortName,
  rewrite,
} from '../../daemon/crio/pull-sources.ts';
import {
  aliasValue,
  checkAliasName,
  locationOf,
  type RegistriesConf,
  type RegistryEntry,
} from '../../daemon/crio/registries-conf.ts';
import { loadRegistries } from '../../daemon/crio/registries-conf.ts';
import { createCrio } from '../../daemon/crio/runtime.ts';
import { NodeFiles } from '../../daemon/node-files.ts';
import { ConfigFileError, InvalidConfig } from '../../daemon/toml.ts';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import {
  InvalidReference,
  parseStrictReference,
  parseNormalized,
  parseReference,
  shortNameOf,
} from '../../src/images/references/reference.ts';
import { offeredTo } from '../../src/registry/client.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { inDirectory, write } from './directory.ts';
import { notCompared, type Handlers, type Input, type Vector } from './handler.ts';
import { isObject, list, object, text } from './input.ts';

export const crioEndpoints: Handlers = {
  match_prefix: (input) => ({ length: prefixLength(text(input, 'ref'), text(input, 'prefix')) ?? -1 }),

  rewrite: (input) =>
    refused(() => {
      const [ref, prefix, location] = ['ref', 'prefix', 'location'].map((name) => text(input, name));
      return { ok: true, ref: rewrite(ref ?? '', prefix ?? '', location ?? '') };
    }),

  location: (input) => refused(() => ({ ok: true, location: locationOf(text(input, 'location')) })),

  load: (input) =>
    refused(async () => {
      const { registries, search, credentialHelpers = [] } = await load(input);
      return {
        ok: true,
        registries: registries.map(shown),
        unqualifiedSearchRegistries: search?.registries ?? null,
        // Defaults of the library, which mean the same.
        credentialHelpers: credentialHelpers.length > 0 ? credentialHelpers : ['containers-auth.json'],
        // CRI-O uses a mode of its own.
        shortNameMode: notCompared,
      };
    }),

  find: (input) =>
    refused(async () => {
      const entry = findEntry(await load(input), text(input, 'ref'));
      return { ok: true, registry: entry ? shown(entry) : null };
    }),

  pull_sources: (input) =>
    refused(async () => {
      const { domain, path, tag, digest } = parseNormalized(text(input, 'ref'));
      const suffix = `${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
      const reference = `${domain}/${path}${suffix || ':latest'}`;
      const sources = pullSources(reference, await load(input)).map((source) => ({
        ref: `${source.domain}/${source.path}${suffix || ':latest'}`,
        insecure: source.insecure,
        blocked: source.blockedBy !== undefined,
        criAuth: source.domain === domain,
      }));
      return { ok: true, sources };
    }),

  crio_pull: (input, vector) =>
    refused(() => (isDeviation(input) ? notCompared : inDirectory((root) => pull(vector, root)))),

  is_short: (input) => refused(() => ({ ok: true, short: shortNameOf(text(input, 'name')) !== undefined })),

  alias_value: (input) => refused(() => ({ ok: true, value: aliasValue(text(input, 'value')) })),

  alias_name: (input) =>
    refused(() => {
      checkAliasName(text(input, 'name'));
      return { ok: true };
    }),

  resolve: (input) => refused(() => candidates(input, false)),

  crio_candidates: (input) => refused(() => candidates(input, true)),
};

/** Our messages are our own; whether something fails is compared. */
async function refused(act: () => unknown): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    const isOurs = [ConfigFileError, InvalidConfig, InvalidReference].some((type) => error instanceof type);
    if (!isOurs) throw error;
    return { ok: false, error: notCompared };
  }
}

async function load(input: Input): Promise<RegistriesConf> {
  return await inDirectory(async (root) => {
    await writeAll(root, input);
    return await loadRegistries(defaultCrioConf, new NodeFiles(root));
  });
}

async function writeAll(root: string, input: Input): Promise<void> {
  for (const [path, content] of Object.entries(object(input, 'files')))
    await write(join(root, path), String(content));
}

function shown({ mirrors, prefix, location, insecure, blocked, mirrorByDigestOnly }: RegistryEntry) {
  return {
    prefix,
    location,
    insecure,
    blocked,
    mirrorByDigestOnly,
    mirrors: mirrors.map(({ use, ...mirror }) => ({
      ...mirror,
      ...(use !== 'all' && { pullFromMirror: use }),
    })),
  };
}

/** @param dropsTag CRI-O drops a tag beside a digest */
async function candidates(input: Input, dropsTag: boolean): Promise<unknown> {
  const name = text(input, 'name');
  const { tag, digest } = parseStrictReference(name);
  const tagged = tag === undefined || (dropsTag && digest !== undefined) ? '' : `:${tag}`;
  const suffix = tagged + (digest === undefined ? '' : `@${digest}`) || ':latest';
  const shortName = shortNameOf(name);
  const conf = await load(input);
  const files = Object.values(object(input, 'files')).join('\n');
  const written = /^short-name-mode = "(\w+)"/m.exec(files)?.[1];
  const mode = (input['mode'] ?? written) === 'enforcing' ? 'enforcing' : 'disabled';
  if (shortName !== undefined)
    return { ok: true, candidates: resolveShortName(shortName, suffix, conf, mode).references };
  const { domain, path } = parseNormalized(name);
  return { ok: true, candidates: [`${domain}/${path}${suffix}`] };
}

/** docs/internals/deviations.md: namespaced auth files, and the kubelet's credential for a short name. */
function isDeviation(input: Input): boolean {
  const isSearched = input['criAuth'] !== null && shortNameOf(text(input, 'image')) !== undefined;
  return input['namespacedAuthFile'] !== undefined || isSearched;
}

/** The endpoints in order, as far as CRI-O asked them; what they answered is the vector's. */
async function pull({ input, expected }: Vector, root: string): Promise<unknown> {
  await writeAll(root, input);
  await write(
    join(root, '/etc/crio/crio.conf'),
    `[crio.image]\nglobal_auth_file = ${JSON.stringify(input['globalAuthFile'])}\nshort_name_mode = ${JSON.stringify(input['shortNameMode'])}\n`,
  );
  const crio = await createCrio({ hostRoot: root, version: '1.36.3', pollMs: 2 ** 30 });
  try {
    const image = text(input, 'image');
    const shortName = shortNameOf(image);
    const target = { ...parseReference(image), ...(shortName !== undefined && { shortName }) };
    const endpoints = (await crio.endpoints(target)).filter(({ refusal }) => !refusal);
    const wanted = isObject(expected) ? list(expected, 'attempts').filter(isObject) : [];
    const isFound = wanted.at(-1)?.['status'] === 200;
    const attempts = endpoints.slice(0, isFound ? wanted.length : undefined).map((endpoint, index) => {
      const { auth, ...answer } = wanted[index] ?? {};
      if ('ping' in answer) return { ...answer, host: endpoint.host };
      const { credential } = offeredTo(endpoint, criCredential(input)) ?? {};
      const login = `${credential?.username ?? ''}:${credential ? reveal(credential.password) : ''}`;
      // An open registry gets no credential.
      const sent = typeof auth === 'string' ? `${auth.split(' ', 1)[0]} ${login}` : null;
      return { ...answer, endpoint: `${endpoint.host}/${endpoint.repository}`, auth: sent };
    });
    return isObject(expected) ? { ...expected, attempts } : undefined;
  } finally {
    await crio.close();
  }
}

function criCredential({ criAuth }: Input): MatchedCredential | undefined {
  if (!isObject(criAuth)) return undefined;
  const credential = { username: String(criAuth['username']), password: secret(String(criAuth['password'])) };
  return { credential, source: 'pull-secret', key: '', origin: '', id: 'cri' };
}
