/**
 * Short names: CRI-O takes the alias of a name, else tries the name in each search registry
 * (go.podman.io/image pkg/shortnames `Resolve`; cri-o internal/storage/image.go
 * CandidatesForPotentiallyShortImageName).
 */
import { InvalidReference } from '../../src/images/references/grammar.ts';
import { parseNormalized } from '../../src/images/references/reference.ts';
import { invalid, type InvalidConfig } from '../toml.ts';
import type { RegistriesConf, shortNameModes } from './registries-conf.ts';

/**
 * The references in the order of pulls.
 * @param name without tag and digest, as written
 * @param suffix the tag or digest: `:latest`
 * @param mode `enforcing`: a name in several registries is refused. Nobody can be asked, so the others are alike
 * @throws InvalidConfig if CRI-O refuses the name
 */
export function resolveShortName(
  name: string,
  suffix: string,
  { aliases, search }: Pick<RegistriesConf, 'aliases' | 'search'>,
  mode: (typeof shortNameModes)[number],
): readonly string[] {
  const alias = aliases.get(name);
  if (alias) return [alias + suffix];
  const { registries, file } = search ?? { registries: [], file: 'registries.conf' };
  if (registries.length === 0)
    throw refused(name, 'it has no alias, and there are no unqualified-search-registries');
  if (registries.length > 1 && mode === 'enforcing')
    throw refused(
      name,
      `short_name_mode is enforcing, and ${file} has ${registries.length} search registries`,
    );
  return registries.map((registry) => {
    try {
      const { domain, path } = parseNormalized(`${registry}/${name}`);
      return `${domain}/${path}${suffix}`;
    } catch (error) {
      if (error instanceof InvalidReference) throw refused(name, error.message);
      throw error;
    }
  });
}

function refused(name: string, reason: string): InvalidConfig {
  return invalid(`CRI-O cannot pull the short name ${name}: ${reason}`);
}
