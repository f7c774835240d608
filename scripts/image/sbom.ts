/** The image's bill of materials, in CycloneDX 1.6: bundled npm packages, Node, and files of Debian. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { DebianPackage } from './debian.ts';
import { nodePackages } from './node-runtime.ts';
import type { Source } from './source.ts';

export interface Ingredients {
  readonly source: Source;
  readonly nodeVersion: string;
  readonly packages: readonly DebianPackage[];
  /** Of the image's index. */
  readonly digest: string;
}

interface LockFile {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly version?: string;
        readonly integrity?: string;
        readonly license?: string;
        readonly dev?: boolean;
        readonly devOptional?: boolean;
      }
    >
  >;
}

type Component = Readonly<Record<string, unknown>>;

/** Packages of `npm ci --omit=dev`: all that the bundle can contain. */
export function bundledPackages(lockFile: string): readonly Component[] {
  const { packages } = JSON.parse(lockFile) as LockFile;
  return Object.entries(packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true)
    .map(([path, { version = '', integrity, license }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      return library(`pkg:npm/${name.replace('@', '%40')}@${version}`, name, version, {
        ...(integrity !== undefined && { hashes: [hashOf(integrity)] }),
        ...(license !== undefined && { licenses: [{ expression: license }] }),
      });
    });
}

/** Writes the document; the same ingredients give the same bytes. */
export function sbom({ source, nodeVersion, packages, digest }: Ingredients): string {
  const components = [
    ...bundledPackages(readFileSync('package-lock.json', 'utf8')),
    ...Object.values(nodePackages).map(({ name, integrity }) =>
      library(`pkg:npm/${name}@${nodeVersion}`, name, nodeVersion, { hashes: [hashOf(integrity)] }),
    ),
    ...packages.map(({ name, version, architecture, sha256 }) =>
      library(
        `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`,
        name,
        version,
        {
          hashes: [{ alg: 'SHA-256', content: sha256 }],
        },
      ),
    ),
  ];
  const unique = new Map(components.map((component) => [component['bom-ref'], component]));
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(digest)}`,
    version: 1,
    metadata: {
      timestamp: new Date(source.time * 1000).toISOString(),
      component: {
        'bom-ref': 'archwright',
        type: 'container',
        name: 'archwright',
        version: source.version,
        hashes: [{ alg: 'SHA-256', content: digest.replace('sha256:', '') }],
        licenses: [{ expression: 'Apache-2.0' }],
      },
    },
    components: [...unique.values()],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function library(purl: string, name: string, version: string, more: Component): Component {
  return { 'bom-ref': purl, type: 'library', name, version, purl, ...more };
}

/** `sha512-<base64>` of npm as CycloneDX writes it. */
function hashOf(integrity: string): { readonly alg: string; readonly content: string } {
  const [algorithm = '', base64 = ''] = integrity.split(/-(.*)/);
  return {
    alg: algorithm.toUpperCase().replace('SHA', 'SHA-'),
    content: Buffer.from(base64, 'base64').toString('hex'),
  };
}

/** A UUID from the text alone: version 8 of RFC 9562. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
