/** Handlers of credential_provider_config_validation.json. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProviderConfig } from '../../daemon/kubelet/config/provider-config.ts';
import { readConfig } from '../../daemon/kubelet/config/read-config.ts';
import { validateConfig } from '../../daemon/kubelet/config/validate-config.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { flag, isObject, itemOf, list, text, texts } from './input.ts';
import { gateError } from './upstream/token-gate.ts';

export const credentialProviderConfig: Handlers = {
  read: async (input) => {
    const dir = await mkdtemp(join(tmpdir(), 'archwright-vectors-'));
    try {
      const files = list(input, 'files').map(itemOf);
      for (const file of files) await writeFile(join(dir, text(file, 'name')), text(file, 'content'));
      const only = files[0];
      const path = flag(input, 'directory') || only === undefined ? dir : join(dir, text(only, 'name'));
      const providers = await readConfig(path);
      const inMs = providers.map(({ defaultCacheDuration, ...others }) => {
        return { ...others, defaultCacheDurationMs: defaultCacheDuration };
      });
      return { ok: true, providers: inMs, configHash: notCompared };
    } finally {
      await rm(dir, { recursive: true });
    }
  },

  validate: (input) => {
    const providers = list(input, 'providers').map(provider);
    const gated = flag(input, 'serviceAccountTokenFeatureGate') ? undefined : gateError(providers);
    const error = gated ?? validateConfig(providers);
    if (error === undefined) return { ok: true };
    return { ok: false, error: ownWords.test(error) ? notCompared : error };
  },
};

/** Refused for the same reason, in shorter words than those of Go and apimachinery. */
const ownWords = /match image is invalid|is not a key of an annotation|defaultCacheDuration: Invalid value/;

/** Absent members get the decoder's defaults. */
function provider(value: unknown): ProviderConfig {
  const fields = itemOf(value);
  const ms = fields['defaultCacheDurationMs'];
  return {
    name: textOr(fields, 'name'),
    matchImages: textsOr(fields, 'matchImages') ?? [],
    defaultCacheDuration: typeof ms === 'number' ? ms : undefined,
    apiVersion: textOr(fields, 'apiVersion'),
    tokenAttributes: isObject(fields['tokenAttributes']) ? attributes(fields['tokenAttributes']) : undefined,
  };
}

function attributes(fields: Input): ProviderConfig['tokenAttributes'] {
  const required = fields['requireServiceAccount'];
  return {
    serviceAccountTokenAudience: textOr(fields, 'serviceAccountTokenAudience'),
    cacheType: textOr(fields, 'cacheType'),
    requireServiceAccount: typeof required === 'boolean' ? required : undefined,
    requiredServiceAccountAnnotationKeys: textsOr(fields, 'requiredServiceAccountAnnotationKeys'),
    optionalServiceAccountAnnotationKeys: textsOr(fields, 'optionalServiceAccountAnnotationKeys'),
  };
}

function textOr(fields: Input, name: string): string {
  return name in fields ? text(fields, name) : '';
}

function textsOr(fields: Input, name: string): string[] | undefined {
  return name in fields ? texts(fields, name) : undefined;
}
