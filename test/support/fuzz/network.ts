/** Parsers of responses of registries and token servers, and of image references. */
import { newerTags } from '../../../cmd/report/newer-tags.ts';
import { parseSamples } from '../../../cmd/installation/scrape.ts';
import { InvalidReference, parseReference } from '../../../src/images/references/reference.ts';
import { platformsOf } from '../../../src/names/platform.ts';
import { InvalidChallenge, parseChallenges, validateRealm } from '../../../src/registry/auth/challenge.ts';
import { readConfig, contentOf } from '../../../src/registry/manifests/platforms-of-index.ts';
import { InvalidDocument, parseObject } from '../../../src/http/json.ts';
import { readManifest } from '../../../src/registry/manifests/manifest.ts';
import { RegistryError } from '../../../src/registry/manifest-lookup.ts';
import { readTags } from '../../../src/registry/lookup-at-endpoint.ts';
import { retryAfter } from '../../../src/http/client.ts';
import { InvalidTokenResponse, readTokenResponse } from '../../../src/registry/auth/token.ts';
import { mediaTypes } from '../registry/content.ts';
import { words } from './inputs.ts';
import { unlessRefused, type FuzzTarget } from './target.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const descriptor = (more: string): string =>
  `{"mediaType":"${mediaTypes.ociManifest}","digest":"${digest}","size":2${more}}`;

async function platformsIn(input: Buffer, contentType: string | undefined): Promise<readonly unknown[]> {
  const document = readManifest(input, contentType);
  const { platforms } = await contentOf(document, digest, {
    where: 'registry.corp',
    manifest: () => Promise.resolve(document),
    config: () => Promise.resolve(readConfig(input)),
  });
  return platformsOf(platforms);
}

/** The result; undefined for an expected refusal. */
const refusable = <T>(read: () => T | Promise<T>): Promise<T | undefined> =>
  unlessRefused([InvalidDocument, RegistryError], read);

export const networkTargets: readonly FuzzTarget[] = [
  {
    name: 'references',
    share: 20,
    runs: 2000,
    examples: [
      'nginx',
      'registry.corp:5000/team/app:v1',
      `[::1]:5000/a/b@${digest}`,
      'docker.io/library/a_b.c/d:1@sha256:x',
    ],
    words: ['a', 'A', '.', '_', '-', '/', ':', '@', '[', ']', '0', 'sha256:', 'a'.repeat(64), 'localhost'],
    feed: (_, text) => {
      const reference = parseReference(text);
      const { domain, path, repository } = reference;
      if (domain === '' || repository !== `${domain}/${path}`) throw new TypeError('no such repository');
    },
    expected: [InvalidReference],
  },
  {
    name: 'challenges',
    share: 20,
    runs: 2000,
    examples: [
      'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull"',
      'Basic realm="a \\"b\\""',
      'Bearer realm=https://a/t , error="invalid_token"\nDigest realm="x", nonce=""',
    ],
    words: words('Bearer Basic a = " \\ , ; \u00ff realm="http://0x7f.1/"', ' ', '\t', '\n'),
    feed: (input) => {
      const lines = input.toString('latin1').split('\n');
      const found = parseChallenges(lines);
      if (found.length > lines.length) throw new TypeError('more challenges than lines');
      const url = new URL('https://registry.corp/v2/');
      for (const { parameters } of found) validateRealm(parameters.get('realm'), url, '203.0.113.7');
      for (const line of lines) retryAfter(line, 0);
    },
    expected: [InvalidChallenge],
  },
  {
    name: 'token responses',
    examples: ['{"token":"abc","access_token":"abc","expires_in":300,"refresh_token":"r"}'],
    words: words('{ } "token": "expires_in": -1 1e308 null , \\n'),
    feed: (input) => {
      const { lastsMs } = readTokenResponse(parseObject(input));
      if (!(lastsMs <= 25 * 60 * 60 * 1000)) throw new TypeError('a token that lasts too long');
    },
    expected: [InvalidDocument, InvalidTokenResponse],
  },
  {
    name: 'lists of tags',
    share: 20,
    examples: [
      '{"name":"library/nginx","tags":["1.25","1.25.3-alpine","latest"]}',
      '{"name":"a","tags":null}',
    ],
    words: words('{ } [ ] "tags": "1.2-alpine3.20" null 1 ,'),
    feed: (input) => {
      const tags = readTags(input);
      for (const tag of tags.slice(0, 5)) newerTags(tag, tags);
      return tags;
    },
    expected: [InvalidDocument],
  },
  /** Every reference leads to the given content, to test circles and nesting. */
  {
    name: 'manifests and indexes',
    share: 4,
    examples: [
      `{"schemaVersion":2,"mediaType":"${mediaTypes.ociIndex}","manifests":[${descriptor(',"platform":{"os":"linux","architecture":"arm64","variant":"v8"}')},${descriptor(',"annotations":{"vnd.docker.reference.type":"attestation-manifest"},"platform":{"os":"unknown","architecture":"unknown"}')}]}`,
      `{"schemaVersion":2,"mediaType":"${mediaTypes.ociManifest}","config":{"mediaType":"${mediaTypes.ociConfig}","digest":"${digest}","size":2},"layers":[]}`,
      `{"schemaVersion":2,"mediaType":"${mediaTypes.dockerManifest}","config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"${digest}","size":2},"layers":[],"architecture":"arm","os":"linux","variant":"v7","os.version":"10.0"}`,
    ],
    words: words('{ } [ ] , "platform": "os.features": "subject": "artifactType": null -1 "manifests":[]'),
    feed: async (input) => {
      await refusable(() => readConfig(input));
      const readings = await Promise.all(
        [mediaTypes.ociIndex, mediaTypes.dockerManifest, undefined, 'text/html; a="'].map((contentType) =>
          refusable(() => platformsIn(input, contentType)),
        ),
      );
      if (readings.every((reading) => reading === undefined)) throw new InvalidDocument('in no way');
    },
    expected: [InvalidDocument],
  },
  {
    name: 'metrics of replicas',
    share: 20,
    examples: [
      '# HELP a_total A.\n# TYPE a_total counter\na_total{age="10s",reason="new"} 3\nb 1.5e+9\nc{d="\\"\\\\\\n"} NaN\n',
    ],
    words: words('{ } " \\ = , # NaN +Inf', '\n', ' ', 'a="'),
    feed: (_, text) => parseSamples(text),
  },
];
