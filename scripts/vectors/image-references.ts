/** Handlers of image_refs.json. */
import {
  parseStrictReference,
  type WrittenReference,
  parseNormalized,
  parseReference,
} from '../../src/images/references/reference.ts';
import { applyDefaultTag, parseImageName } from './upstream/kubelet-reference.ts';
import { familiarName, formatReference, parseAnyReference } from './upstream/reference-forms.ts';
import { createDefaultEndpoints } from '../../src/registry/endpoints/endpoint.ts';
import type { Handlers } from './handler.ts';
import { text, texts } from './input.ts';

export const imageReferences: Handlers = {
  parse_normalized: (input) => {
    const written = parseNormalized(text(input, 'image'));
    return { ...fields(written), dockerRef: parseReference(text(input, 'image')).text };
  },

  parse_strict: (input) => {
    const algorithms =
      'registeredDigestAlgorithms' in input ? texts(input, 'registeredDigestAlgorithms') : undefined;
    return fields(parseStrictReference(text(input, 'image'), algorithms));
  },

  // The tag or the digest that is pulled.
  parse_docker_ref: (input) => fields(parseNormalized(parseReference(text(input, 'image')).text)),

  parse_any: (input) => fields(parseAnyReference(text(input, 'image'))),

  kubelet_parse_image_name: (input) => {
    const { repository, tag, digest } = parseImageName(text(input, 'image'));
    return { ok: true, repo: repository, tag, digest };
  },

  kubelet_default_tag: (input) => ({ image: applyDefaultTag(text(input, 'image')) }),

  pipeline: async (input) => {
    const target = parseReference(text(input, 'image'));
    const { repository, domain, path, object } = target;
    const [origin] = await createDefaultEndpoints().endpoints(target);
    return {
      keyringLookup: repository,
      hostsNamespace: domain,
      defaultHost: origin?.host,
      manifestPath: origin && `${new URL(origin.base).pathname}/${path}/manifests/${object}`,
    };
  },
};

function fields(written: WrittenReference): Record<string, unknown> {
  const { domain, path, tag, digest } = written;
  const result = { ok: true, string: formatReference(written), tag, digest };
  if (path === '') return result;
  return {
    ...result,
    domain,
    path,
    name: formatReference({ domain, path }),
    familiarName: familiarName(written),
  };
}
