/** Handlers of image_refs.json. */
import { parseStrictReference } from '../../src/images/reference-grammar.ts';
import type { WrittenReference } from '../../src/images/reference-grammar.ts';
import { applyDefaultTag, parseImageName } from '../../src/images/reference-kubelet.ts';
import {
  familiarName,
  formatReference,
  parseAnyReference,
  parseNormalized,
  parseReference,
  pullReference,
} from '../../src/images/reference.ts';
import type { Handlers } from './handler.ts';
import { text, texts } from './input.ts';

export const imageReferences: Handlers = {
  parse_normalized: (input) => {
    const written = parseNormalized(text(input, 'image'));
    return { ...fields(written), dockerRef: pullReference(parseReference(text(input, 'image'))).text };
  },

  parse_strict: (input) => {
    const algorithms =
      'registeredDigestAlgorithms' in input ? texts(input, 'registeredDigestAlgorithms') : undefined;
    return fields(parseStrictReference(text(input, 'image'), algorithms));
  },

  parse_docker_ref: (input) => fields(pullReference(parseReference(text(input, 'image')))),

  parse_any: (input) => fields(parseAnyReference(text(input, 'image'))),

  kubelet_parse_image_name: (input) => {
    const { repository, tag, digest } = parseImageName(text(input, 'image'));
    return { ok: true, repo: repository, tag, digest };
  },

  kubelet_default_tag: (input) => ({ image: applyDefaultTag(text(input, 'image')) }),

  pipeline: (input) => {
    const { repository, domain, path, object } = pullReference(parseReference(text(input, 'image')));
    return {
      keyringLookup: repository,
      hostsNamespace: domain,
      defaultHost: domain === 'docker.io' ? 'registry-1.docker.io' : domain,
      manifestPath: `/v2/${path}/manifests/${object}`,
    };
  },
};

function fields(written: WrittenReference): Record<string, unknown> {
  const { domain, path, tag, digest } = written;
  const answer = { ok: true, string: formatReference(written), tag, digest };
  if (path === '') return answer;
  return {
    ...answer,
    domain,
    path,
    name: formatReference({ domain, path }),
    familiarName: familiarName(written),
  };
}
