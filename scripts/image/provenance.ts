/** The image's provenance: an in-toto statement with the predicate of SLSA 1.0, signed in the release. */
import { nodePackages, type Architecture } from './node-runtime.ts';
import type { Ingredients } from './sbom.ts';

/** Writes the statement; the same ingredients give the same bytes. */
export function provenance({
  source,
  nodeVersion,
  packages,
  digest,
  platforms,
}: Ingredients & { readonly platforms: readonly Architecture[] }): string {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'archwright', digest: { sha256: digest.replace('sha256:', '') } }],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://arch.example/build/npm-run-image/v1',
        externalParameters: {
          platforms: platforms.map((architecture) => `linux/${architecture}`),
          version: source.version,
        },
        internalParameters: { workingTreeChanged: source.isChanged, sourceDateEpoch: source.time },
        resolvedDependencies: [
          {
            uri: `git+https://github.com/archwright/archwright@${source.commit}`,
            digest: { gitCommit: source.commit },
          },
          ...platforms.map((architecture) => {
            const { name, integrity } = nodePackages[architecture];
            const sha512 = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
            return { uri: `pkg:npm/${name}@${nodeVersion}`, digest: { sha512 } };
          }),
          ...packages.map(({ name, version, architecture, sha256 }) => ({
            uri: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`,
            digest: { sha256 },
          })),
        ],
      },
      runDetails: {
        builder: { id: process.env['ARCHWRIGHT_BUILDER'] ?? 'https://arch.example/builder/local' },
      },
    },
  };
  return `${JSON.stringify(statement, undefined, 2)}\n`;
}
